"""Recommenders of one group share a ledger, and nobody gets a fresh budget by changing groups."""

from typing import Any

import pytest

from discreet.decisions import changes
from discreet.decisions import registry as registry_module
from discreet.decisions.ledger_groups import LEDGER, fix_ledger
from discreet.decisions.services import DecisionServices
from discreet.errors import InvalidArgument
from discreet.families.contextual.document import ContextualDocument
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock, document, privacy

pytestmark = pytest.mark.anyio


async def put(services: DecisionServices, name: str, budget: float = 5.0, **changes: Any) -> None:
    await services.registry.put(name, document(privacy=privacy(budget=budget), **changes))


async def ask(services: DecisionServices, recommender: str, client: str = "ada") -> Recommendation:
    return await services.recommend.recommend(Ask(recommender, client, (0.2, 0.8)))


async def test_a_name_keeps_its_group(store: MemoryStore) -> None:
    await fix_ledger(store, "films", "shop")
    await fix_ledger(store, "films", "shop")
    await fix_ledger(store, "books", None)
    for name, group in (("films", None), ("films", "other"), ("books", "shop")):
        with pytest.raises(InvalidArgument, match="fresh budget"):
            await fix_ledger(store, name, group)
    assert await store.secret(name=LEDGER + "films", proposal=b"later") == b"shop"


async def test_recommenders_of_a_group_spend_from_one_ledger(services: DecisionServices) -> None:
    await put(services, "one", ledger="shop")
    await put(services, "two", ledger="shop")
    await put(services, "alone")
    answers = [await ask(services, name) for name in ("one", "two", "one", "two", "one", "two")]
    assert [answer.personalised for answer in answers] == [True] * 5 + [False]
    assert answers[-1].reason is not None
    assert (await ask(services, "alone")).personalised
    assert (await ask(services, "two", "bob")).personalised


async def test_each_recommender_checks_its_own_budget_against_the_shared_total(
    services: DecisionServices,
) -> None:
    await put(services, "generous", budget=5.0, ledger="shop")
    await put(services, "strict", budget=2.0, ledger="shop")
    assert [(await ask(services, "strict")).personalised for _ in range(3)] == [True, True, False]
    assert [(await ask(services, "generous")).personalised for _ in range(4)] == [True] * 3 + [
        False
    ]


async def test_feedback_is_paid_from_the_shared_ledger_and_counted_by_recommender(
    services: DecisionServices,
) -> None:
    """Two recommenders have two noises: the first record of each costs as a first one."""
    await put(services, "one", ledger="shop")
    await put(services, "two", ledger="shop")
    for name in ("one", "two"):
        answer = await ask(services, name)
        feedback = Feedback(1.0, recommendation_id=answer.recommendation_id)
        assert (await services.feedback.record(feedback)).learned
    reports = [
        await services.clients.budget(recommender=name, client="ada") for name in ("one", "two")
    ]
    assert reports[0] == reports[1]
    recommender = await services.registry.find("one")
    (ledger,) = await services.store.ledgers([recommender.principal("ada")])
    price = recommender._feedback_charge  # type: ignore[attr-defined]
    assert ledger.feedback.nano_rho == 2 * price.nano_rho


async def test_a_group_cannot_be_changed_or_left_not_even_by_beginning_anew(
    services: DecisionServices,
) -> None:
    await put(services, "one", ledger="shop")
    for ledger in (None, "other"):
        with pytest.raises(InvalidArgument, match="ledger"):
            await put(services, "one", ledger=ledger)
    await services.registry.remove("one")
    for ledger in (None, "other"):
        with pytest.raises(InvalidArgument, match="fresh budget"):
            await put(services, "one", ledger=ledger)
    await put(services, "one", ledger="shop")


def windowed(
    answers: dict[str, Any] | None = None, feedback: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Budgets of 5 with the given window or delta."""
    return {
        "answers": {"epsilon": 1.0, "budget": {"epsilon": 5.0, "per": "30d", **(answers or {})}},
        "feedback": {"budget": {"epsilon": 5.0, "per": "30d", **(feedback or {})}},
    }


OTHER_TERMS = [
    ({"answers": {"per": "7d"}}, "privacy.answers.budget", "per 30d"),
    ({"answers": {"per": None}}, "privacy.answers.budget", "per 30d"),
    ({"answers": {"per": "36h"}}, "privacy.answers.budget", "per 30d"),
    ({"answers": {"delta": 1e-7}}, "privacy.answers.budget", "delta 1e-06"),
    ({"feedback": {"per": "1d"}}, "privacy.feedback.budget", "per 30d"),
    ({"feedback": {"delta": 1e-9}}, "privacy.feedback.budget", "delta 1e-06"),
]


@pytest.mark.parametrize(("changes", "field", "names"), OTHER_TERMS)
async def test_a_group_has_one_window_and_one_delta(
    services: DecisionServices, changes: dict[str, Any], field: str, names: str
) -> None:
    registry = services.registry
    await registry.put("one", document(privacy=windowed(), ledger="shop"))
    other = document(privacy=windowed(**changes), ledger="shop")
    for name in ("two", "one"):
        with pytest.raises(InvalidArgument, match=names) as refusal:
            await registry.put(name, other)
        assert refusal.value.argument == field
    assert "two" not in (await registry.current()).recommenders
    # Not even when nobody else is left: what was spent is still in the ledgers.
    await registry.remove("one")
    with pytest.raises(InvalidArgument, match=names):
        await registry.put("two", other)
    # The same length in other words, and another epsilon, are no other window.
    same = windowed({"per": "720h", "epsilon": 2.0}, {"epsilon": 3.0})
    await registry.put("two", document(privacy=same, ledger="shop"))
    # Alone, or in another group, the document is as good as any.
    await registry.put("three", document(privacy=windowed(**changes)))
    await registry.put("four", document(privacy=windowed(**changes), ledger="other"))


async def test_the_first_that_has_an_account_fixes_its_window(services: DecisionServices) -> None:
    exact = {**windowed(), "feedback": "exact"}
    await services.registry.put("one", document(privacy=exact, ledger="shop"))
    weekly = windowed(feedback={"per": "1w"})
    await services.registry.put("two", document(privacy=weekly, ledger="shop"))
    with pytest.raises(InvalidArgument, match="per 7d"):
        await services.registry.put("three", document(privacy=windowed(), ledger="shop"))


def contextual(dimensions: int, **changes: Any) -> ContextualDocument:
    """A document whose feedback is counted in epsilon up to three numbers, and in rho above."""
    written = {"algorithm": "contextual", "items": ["a", "b"], "privacy": windowed(), **changes}
    return ContextualDocument.model_validate({**written, "context": {"dimensions": dimensions}})


async def test_a_ledger_counts_feedback_in_one_way(services: DecisionServices) -> None:
    registry = services.registry
    await registry.put("few", contextual(2, ledger="shop"))
    await registry.put("few-too", contextual(3, ledger="shop"))
    for other in (contextual(8, ledger="shop"), document(privacy=windowed(), ledger="shop")):
        with pytest.raises(InvalidArgument, match="counted in epsilon") as refusal:
            await registry.put("many", other)
        assert refusal.value.argument == "privacy.feedback.budget"
    await registry.put("many", contextual(8, ledger="other"))
    with pytest.raises(InvalidArgument, match="counted in epsilon"):
        await registry.put("few-more", contextual(2, ledger="other"))


async def test_a_name_counts_feedback_in_one_way(services: DecisionServices) -> None:
    """What was spent under a name is found again by the next recommender of that name."""
    await services.registry.put("shelf", contextual(2))
    await services.registry.remove("shelf")
    with pytest.raises(InvalidArgument, match="ledger of shelf"):
        await services.registry.put("shelf", contextual(8))
    await services.registry.put("shelf", contextual(3))
    await services.registry.put("books", contextual(8))


async def test_recommenders_from_before_there_were_two_ways_of_counting_are_asked(
    services: DecisionServices, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their groups say nothing of it, and neither do their names."""
    registry, terms = services.registry, "ledger terms/feedback/shop"
    await store.secret(name=terms, proposal=b"per 30d and delta 1e-06")

    async def unlooked(*_: Any) -> None:
        """As it was before."""

    with monkeypatch.context() as patch:
        patch.setattr(registry_module, "fix_terms", unlooked)
        await registry.put("few", contextual(2, ledger="shop"))
        await registry.put("shelf", contextual(2))
    with pytest.raises(InvalidArgument, match="1e-06, privacy counted in epsilon"):
        await registry.put("many", contextual(8, ledger="shop"))
    await registry.put("few", contextual(2, ledger="shop", items=["a", "z"]))
    await registry.remove("shelf")
    with pytest.raises(InvalidArgument, match="ledger of shelf"):
        await registry.put("shelf", contextual(8))


async def test_a_member_of_a_group_that_was_mixed_before_can_still_be_changed(
    services: DecisionServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unlooked(*_: Any) -> None:
        """As it was before mixed groups were refused."""

    monthly, weekly = windowed(), windowed({"per": "7d"})
    with monkeypatch.context() as patch:
        patch.setattr(registry_module, "fix_terms", unlooked)
        await services.registry.put("one", document(privacy=monthly, ledger="shop"))
        await services.registry.put("two", document(privacy=weekly, ledger="shop"))
    await services.registry.put("two", document(privacy=weekly, ledger="shop", items=["a", "z"]))
    await services.registry.change("one", changes.change_item("a", {"hidden": True}))
    # A third one follows whichever comes first from now on; those that stand are left alone.
    await services.registry.put("three", document(privacy=weekly, ledger="shop"))
    with pytest.raises(InvalidArgument, match="per 7d"):
        await services.registry.put("four", document(privacy=monthly, ledger="shop"))


async def test_what_a_mixed_group_would_spend(
    store: MemoryStore, services: DecisionServices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why it is refused: the largest budget is 5, and 20 would be spent in 28 days."""

    async def unlooked(*_: Any) -> None:
        """As it was before mixed groups were refused."""

    monkeypatch.setattr(registry_module, "fix_terms", unlooked)
    await services.registry.put("one", document(privacy=windowed(), ledger="shop"))
    weekly = windowed({"per": "7d"})
    await services.registry.put("two", document(privacy=weekly, ledger="shop"))
    clock.now = 210 * 86_400 * 100.0  # both windows begin
    for _ in range(4):
        for name in ("two", "one"):
            while (await ask(services, name)).personalised:
                pass
        clock.now += 7 * 86_400
    recommender = await services.registry.find("one")
    (ledger,) = await store.ledgers([recommender.principal("ada")])
    assert ledger.answers.nano_epsilon == 4 * 5 * 10**9
