"""Lists: paid before shown, shown before sent, sent as shown, sent again for free."""

import json
from typing import Any

import pytest

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import Level
from discreet.hub import ledger, releases, views
from discreet.hub.catalogue import PublicCatalogue, parse
from discreet.hub.choices import Choices
from discreet.hub.database import Database
from discreet.hub.errors import HubRefusal, ServerError
from discreet.hub.hub import Hub
from discreet.privacy.charges import NANO
from discreet.research.noise import SeededNoise
from tests.hub.conftest import NOW, document, quoted
from tests.hub.recommending import Recommending

ALL = Choices(overall=Level.ALL)
NO = Choices(overall=Level.NO)
MIXED = Choices(by_category=True, levels={"Drama": Level.ALL, "Crime": Level.NO})


def see(hub: Hub, *numbers: int) -> None:
    for number in numbers:
        hub.see(f"f{number}")


def create(hub: Hub, *, early: bool = False) -> releases.StoredRelease:
    state = views.state(hub)
    after = state["release"]["number"] if state["release"] else 0
    return hub.create(after=after, agreed=state["quote"]["nano_epsilon"], early=early)


def rows(hub: Hub, table: str) -> int:
    with hub.database.transaction() as work:
        return int(work.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_list_is_paid_for_and_stored_by_the_commit_that_precedes_showing_it(hub: Hub) -> None:
    see(hub, 1, 2, 3)
    made = create(hub)
    # Another program, with a connection of its own, finds it: it is on the disk, paid for.
    with Database(hub.database.path.parent, hub.name).transaction() as work:
        ((items, basis),) = work.execute("SELECT items, basis FROM releases").fetchall()
        ((nano_epsilon,),) = work.execute("SELECT nano_epsilon FROM ledger").fetchall()
    assert json.loads(items) == list(made.items)
    assert json.loads(basis) == ["f1", "f2", "f3"]
    assert nano_epsilon == made.nano_epsilon > 0
    state = views.state(hub)
    assert [item["id"] for item in state["release"]["items"]] == list(made.items)
    assert state["totals"]["epsilon"] == made.nano_epsilon / NANO


def test_a_list_that_fails_is_neither_booked_nor_stored(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("no noise today")

    monkeypatch.setattr(releases, "perturb", fail)
    with pytest.raises(RuntimeError):
        create(hub)
    assert (rows(hub, "ledger"), rows(hub, "releases")) == (0, 0)


def test_a_list_that_costs_more_than_agreed_is_thrown_away(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = releases.perturb
    monkeypatch.setattr(
        releases, "perturb", lambda **given: honest(**{**given, "epsilon": given["epsilon"] * 2})
    )
    with pytest.raises(HubRefusal, match="discarded"):
        create(hub)
    assert (rows(hub, "ledger"), rows(hub, "releases")) == (0, 0)


def test_every_list_costs_also_when_nothing_changed(hub: Hub) -> None:
    see(hub, 1)
    first = create(hub)
    second = create(hub, early=True)
    with hub.database.transaction() as work:
        account = ledger.totals(work)
    assert account.lists == 2
    assert account.total.nano_epsilon == first.nano_epsilon + second.nano_epsilon


def test_a_second_window_or_click_does_not_pay_twice(hub: Hub) -> None:
    price = quoted(hub)
    hub.create(after=0, agreed=price, early=False)
    with pytest.raises(HubRefusal, match="created meanwhile"):
        hub.create(after=0, agreed=price, early=True)
    assert rows(hub, "ledger") == 1


def test_only_the_price_that_was_shown_is_paid(hub: Hub) -> None:
    price = quoted(hub)
    hub.choose(Choices(epsilon=3.0))
    with pytest.raises(HubRefusal, match="price has changed"):
        hub.create(after=0, agreed=price, early=False)
    assert rows(hub, "ledger") == 0


def test_early_lists_have_to_be_confirmed(hub: Hub) -> None:
    hub.set_limits(limit=5.0, threshold=3)
    see(hub, 1, 2)
    create(hub)
    see(hub, 3)
    hub.unsee("f1")
    assert views.state(hub)["release"]["changed"] == 2
    assert views.state(hub)["quote"]["early"]
    with pytest.raises(HubRefusal, match="Only 2 of 3 items"):
        create(hub)
    see(hub, 4)
    assert not views.state(hub)["quote"]["early"]
    create(hub)
    # Other controls are a reason of their own.
    hub.choose(MIXED)
    assert not views.state(hub)["quote"]["early"]


def test_nothing_is_created_beyond_the_limit(hub: Hub) -> None:
    hub.choose(Choices(epsilon=0.3))
    hub.set_limits(limit=0.6, threshold=1)
    create(hub)
    create(hub, early=True)  # exactly the limit
    assert not views.state(hub)["quote"]["within_limit"]
    with pytest.raises(HubRefusal, match="above the limit"):
        create(hub, early=True)
    assert rows(hub, "ledger") == 2
    # What costs nothing still can be.
    hub.choose(NO)
    assert create(hub).nano_epsilon == 0


def test_the_price_knows_the_controls_and_the_catalogue_only(hub: Hub) -> None:
    def prices() -> list[releases.PriceQuote]:
        releases._quote.cache_clear()
        with hub.database.transaction() as work:
            catalogue = releases.require(work)
        return [releases.quote(catalogue, choices) for choices in (Choices(), ALL, NO, MIXED)]

    before = prices()
    see(hub, *range(40))
    assert prices() == before


def test_the_same_noise_gives_the_same_list_and_other_noise_another(
    hub: Hub, database: Database
) -> None:
    see(hub, *range(20))
    hub.set_limits(limit=50.0, threshold=1)

    def items(seed: int) -> tuple[str, ...]:
        with database.transaction() as work:
            before = releases.latest(work)
            price = releases.quote(releases.require(work), Choices())
            return releases.create(
                work,
                after=before.number if before else 0,
                agreed=price.charge.nano_epsilon,
                early=True,
                noise=SeededNoise(seed),
                now=NOW,
            ).items

    assert items(1) == items(1)
    assert len({items(seed) for seed in range(5)}) > 1


def test_all_is_the_history_itself_and_no_epsilon_hides_it(hub: Hub) -> None:
    hub.choose(ALL)
    see(hub, 1, 2, 3)
    made = create(hub)
    assert made.items == made.openly == ("f1", "f2", "f3")
    state = views.state(hub)
    assert state["totals"]["epsilon"] == 0
    assert state["totals"]["openly"] == ("Comedy", "Crime", "Drama")
    assert "Exactly which 3 items you have seen" in state["release"]["reveals"][0]
    # And the next list, under other controls, does not promise what cannot be had any more.
    hub.choose(Choices())
    assert any("never sent unprotected" in text for text in views.state(hub)["quote"]["reveals"])


def test_no_sends_nothing(hub: Hub) -> None:
    hub.choose(NO)
    see(hub, 1, 2, 3)
    made = create(hub)
    assert made.items == ()
    assert views.state(hub)["totals"]["openly"] == ()
    assert "no item is sent" in views.state(hub)["release"]["reveals"][0]


def test_by_category_the_most_private_decides(hub: Hub, public: PublicCatalogue) -> None:
    hub.choose(MIXED)
    see(hub, *range(48))
    made = create(hub)
    crime = {item.id for item in public.items if "Crime" in item.categories}
    drama_only = {item.id for item in public.items if item.categories == ("Drama",)}
    assert not crime & set(made.items)
    assert set(made.openly) == drama_only
    assert drama_only <= set(made.items)
    state = views.state(hub)
    assert state["quote"]["perturbed"] == ("Comedy",)
    assert state["totals"]["openly"] == ("Drama",)
    assert made.nano_epsilon > 0


def test_a_category_without_items_says_nothing(hub: Hub) -> None:
    hub.choose(Choices(by_category=True, levels={"Silent": Level.ALL}))
    assert "Silent" not in views.state(hub)["quote"]["openly"]
    create(hub)
    assert "Silent" not in {row["category"] for row in views.state(hub)["release"]["profile"]}
    with pytest.raises(HubRefusal, match="no category “Loud”"):
        hub.choose(Choices(by_category=True, levels={"Loud": Level.NO}))


def test_what_is_sent_is_what_is_shown_and_again_is_free(hub: Hub, served: Recommending) -> None:
    see(hub, *range(10))
    number = create(hub).number
    shown = [item["id"] for item in views.state(hub)["release"]["items"]]
    hub.send(number)
    hub.send(number)
    client = views.state(hub)["client"]
    assert served.profiles == {client: shown}
    assert [body for _, _, _, body in served.asked] == [
        {"client": client, "items": shown, "replace": True}
    ] * 2
    assert rows(hub, "ledger") == 1
    assert views.state(hub)["release"]["sent"] == NOW


def test_a_server_that_fails_costs_nothing_and_loses_nothing(
    hub: Hub, served: Recommending
) -> None:
    see(hub, 1, 2)
    number = create(hub).number
    shown = views.state(hub)["release"]
    served.fault = (503, b"")
    with pytest.raises(ServerError, match="failed"):
        hub.send(number)
    assert views.state(hub)["release"] == shown
    served.fault = None
    hub.send(number)
    assert rows(hub, "ledger") == 1


def test_only_the_last_list_can_be_sent(hub: Hub) -> None:
    first = create(hub).number
    create(hub, early=True)
    with pytest.raises(HubRefusal, match="Only the last"):
        hub.send(first)


def test_items_outside_the_catalogue_are_never_released(hub: Hub) -> None:
    hub.choose(ALL)
    see(hub, 1, 2)
    smaller = document()
    smaller["items"] = [item for item in smaller["items"] if item["id"] != "f1"]
    hub.use_catalogue(parse(smaller), source="file")
    assert create(hub).items == ("f2",)
    assert views.state(hub)["outside"] == 1


def test_thresholds_are_checked(hub: Hub) -> None:
    for threshold in (0, 10_001):
        with pytest.raises(InvalidArgument, match="threshold"):
            hub.set_limits(limit=1.0, threshold=threshold)
    assert views.state(hub)["totals"]["limit"] == ledger.DEFAULT_LIMIT, "both are set, or neither"
