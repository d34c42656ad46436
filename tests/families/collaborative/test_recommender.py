"""What clients are answered, and how feedback, releases and documents change it."""

import importlib.util
import pickle
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument, RewardConflict, UnknownRecommender
from discreet.families.collaborative.guarantee import (
    REASON_EXACT,
    REASON_NO_PROFILE,
    REASON_ON_DEVICE,
)
from discreet.families.collaborative.learning import REWARDS
from discreet.families.collaborative.processes import TrainingProcess
from discreet.families.documents import ItemDocument
from discreet.families.observer import AnswerOutcome, FamilyCounter, FamilyGauge, NullObserver
from discreet.families.questions import Answered, Ask, Candidate, Receipt
from discreet.research.noise import SeededNoise
from discreet.state.stores import EXACT, NO_CHARGE
from tests.families.collaborative.library import CRIME, SPACE, Library, document

pytestmark = pytest.mark.anyio


@pytest.fixture
async def trained(library: Library, here: None) -> Library:
    await library.read_by_others()
    await library.release()
    return library


async def test_unknown_clients_get_popular_items(trained: Library) -> None:
    answer = await trained.answer("stranger")
    assert answer.decision.items == ("knife", "alibi", "motive", *SPACE, "clue")
    assert not answer.decision.personalised
    assert answer.decision.reason == REASON_NO_PROFILE
    report = trained.books.report(answer)
    assert (report.epsilon, report.spent, report.remaining) == (None,) * 3


async def test_a_profile_counts_at_once_and_its_items_are_left_out(trained: Library) -> None:
    await trained.send("reader", "comet", "rocket")
    decision = await trained.ask("reader")
    assert decision.items == ("orbit", "crater", "knife", "alibi", "motive", "clue")
    assert decision.personalised
    await trained.send("reader", "alibi")
    assert (await trained.ask("reader")).items[:3] == ("knife", "motive", "clue")


async def test_before_the_first_release_there_is_an_answer(library: Library) -> None:
    assert (await library.ask("stranger")).items == (*CRIME, *SPACE)
    await library.send("reader", "alibi")
    decision = await library.ask("reader", limit=2)
    assert decision.items == ("knife", "motive")
    assert decision.personalised, "it depends on the profile: what that holds is left out"


async def test_exact_answers_are_booked_as_unlimited(trained: Library) -> None:
    await trained.send("reader", "comet")
    answer = await trained.answer("reader")
    assert (answer.charge, answer.outcome) == (EXACT, AnswerOutcome.UNPROTECTED)
    assert answer.decision.reason == REASON_EXACT
    (ledger,) = await trained.store.ledgers([trained.books.principal("reader")])
    assert ledger.answers == EXACT


async def test_answers_cost_nothing_where_the_device_has_paid(here: None) -> None:
    library = Library(privacy={"answers": "on-device"})
    await library.send("reader", "comet")
    answer = await library.answer("reader")
    assert answer.charge == NO_CHARGE
    assert answer.decision.reason == REASON_ON_DEVICE
    assert library.books.report(answer).epsilon is None, "and nothing suggests that it was 0"
    (ledger,) = await library.store.ledgers([library.books.principal("reader")])
    assert ledger.answers == NO_CHARGE


async def test_only_items_of_a_category(trained: Library) -> None:
    await trained.send("reader", "comet")
    found = await trained.ask("reader", category="space")
    assert set(found.items) == {*SPACE, "clue"} - {"comet"}
    found = await trained.ask("stranger", category="crime", limit=2)
    assert set(found.items) == {"knife", "alibi"}
    with pytest.raises(InvalidArgument) as refused:
        await trained.ask("reader", category="poetry")
    assert refused.value.argument == "category"


async def test_exclusions_and_candidates(trained: Library) -> None:
    await trained.send("reader", "comet")
    found = await trained.ask("reader", candidates=["comet", "orbit", "knife"], exclude=["knife"])
    assert found.items == ("orbit",)
    answer = await trained.answer("reader", candidates=["comet"])
    assert (answer.decision.items, answer.outcome) == ((), AnswerOutcome.EMPTY)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("context", [0.5]),
        ("features", (1.0,)),
        ("round", "one"),
        ("candidates", [Candidate("knife", (1.0,))]),
        ("candidates", ["no such book"]),
    ],
)
async def test_what_means_nothing_here_is_refused(library: Library, field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        library.books.question(Ask(**{"recommender": "books", "client": "c", field: value}))
    assert refused.value.argument == field


async def test_many_questions_are_answered_as_one_by_one(trained: Library) -> None:
    await trained.send("reader", "comet")
    asks = [
        Ask("books", client, limit=limit, category=category)
        for client in ("reader", "stranger")
        for limit in (1, 8)
        for category in (None, "crime", "space")
    ]
    together = await trained.books.answer(
        [trained.books.question(ask) for ask in asks], [None] * len(asks)
    )
    for ask, answer in zip(asks, together, strict=True):
        assert isinstance(answer, Answered)
        alone = await trained.ask(ask.client, limit=ask.limit, category=ask.category)
        assert answer.decision == alone


async def test_deciding_reads_nothing_but_its_arguments(trained: Library) -> None:
    await trained.send("reader", "comet")
    question = trained.books.question(Ask("books", "reader", limit=8))
    own = await trained.books.read_own([question])
    model = trained.books.current.model
    before = pickle.dumps((model, own))
    elsewhere = Library(stored=trained.books.stored).books
    first = trained.books.decide(model, [question], own, SeededNoise(1))
    second = elsewhere.decide(model, [question], own, SeededNoise(2))
    assert first == second
    assert pickle.dumps((model, own)) == before, "inputs are not changed"


async def test_hidden_removed_and_later_items(trained: Library) -> None:
    await trained.send("reader", "comet")
    items = [
        item.model_copy(update={"hidden": item.id == "rocket"})
        for item in document().items
        if item.id != "orbit"
    ]
    trained.change(items=[*items, ItemDocument(id="late", categories=["space"])])
    found = await trained.ask("reader")
    assert found.items == ("crater", "knife", "alibi", "motive", "clue", "late")
    assert set((await trained.ask("reader", category="space")).items) == {"crater", "clue", "late"}
    assert await trained.send("reader", "late", "knife") == 2


async def test_feedback_makes_an_item_popular_for_everybody(trained: Library) -> None:
    assert (await trained.ask("stranger")).items[-1] == "clue"
    for reader in range(4):
        pending = trained.pending(f"another {reader}", await trained.ask(f"another {reader}"))
        first, again = await trained.tell([(pending, "clue", 0.9), (pending, "clue", 0.9)])
        assert (first, again) == (Receipt(duplicate=False), Receipt(duplicate=True))
    (conflict,) = await trained.tell([(pending, "clue", 0.1)])
    assert isinstance(conflict, RewardConflict)
    assert (await trained.ask("stranger")).items[-1] == "clue", "not before it is released"
    await trained.release()
    # 2 profiles and 4 * 0.9, against the 4 profiles of three books.
    assert (await trained.ask("stranger")).items[0] == "clue"
    await trained.send("reader", "comet")
    assert (await trained.ask("reader")).items[:3] == ("rocket", "orbit", "crater")


async def test_rewards_add_up_over_releases(trained: Library) -> None:
    slot = trained.books.slot_of["clue"]
    for count in (1, 2):
        await trained.reward("reader", "clue")
        assert (await trained.release()).rewards[slot] == count
    assert (await trained.release()).rewards[slot] == 2, "each is counted in one release"


async def test_exact_feedback_is_booked_as_unlimited(trained: Library) -> None:
    await trained.reward("reader", "clue")
    (ledger,) = await trained.store.ledgers([trained.books.principal("reader")])
    assert ledger.feedback == EXACT


async def test_feedback_must_name_one_of_several_items(trained: Library) -> None:
    pending = trained.pending("reader", await trained.ask("reader", limit=2))
    for item in (None, "crater"):
        (refused,) = await trained.tell([(pending, item, 1.0)])
        assert isinstance(refused, InvalidArgument)
        assert refused.argument == "item"


PRIVATE = {"feedback": {"epsilon": 1.0, "budget": {"epsilon": 2.0}}}


async def test_private_feedback_is_paid_for_and_stops_with_the_budget() -> None:
    library = Library(privacy=PRIVATE, noise=SeededNoise(1))
    receipts = [await library.reward("reader", "clue") for _ in range(4)]
    # Epsilon 2 is rho 0.0882 at 1e-6, and one record 0.0244: one of them, or (1 + 3) of 0.0244 for
    # two between the same two releases, which is too much.
    assert [receipt.learned for receipt in receipts] == [True, False, False, False]
    gathered = await library.books.gather(1)
    assert gathered.rewards[REWARDS].sum() == 2**20
    _, spent = await library.books.budgets("reader")
    assert spent.spent is not None
    assert 0.99 < spent.spent.epsilon <= 1.0


async def test_records_in_separate_releases_cost_their_sum() -> None:
    library = Library(privacy=PRIVATE, noise=SeededNoise(1))
    learned = []
    for _ in range(4):
        learned.append((await library.reward("reader", "clue")).learned)
        await library.release()
    assert learned == [True, True, True, False]


async def test_a_private_release_has_noise_on_every_item() -> None:
    library = Library(privacy=PRIVATE, noise=SeededNoise(1))
    first = await library.release()
    assert np.all(first.rewards != 0)
    assert np.all(first.variances > 0)
    second = await library.release()
    np.testing.assert_allclose(second.variances, 2 * first.variances)
    library.change(privacy=PRIVATE, items=[*document().items, ItemDocument(id="late")])
    third = await library.release()
    assert third.variances[-1] == pytest.approx(first.variances[0]), "it has had one release"


async def test_training_waits_for_changes(trained: Library) -> None:
    async def trains() -> bool:
        gathered = await trained.books.gather(trained.books.current.number + 1)
        return gathered.profiles is not None

    assert not await trains()
    await trained.reward("reader", "clue")
    assert not await trains(), "feedback has no part in it"
    await trained.send("reader", "comet", "clue")
    assert await trains()
    await trained.release()
    assert not await trains()
    trained.change(training={"neighbours": 2})
    assert await trains(), "another number of neighbours makes another model"


async def test_a_crashed_release_is_made_again_of_the_same(library: Library, here: None) -> None:
    await library.read_by_others()
    await library.reward("reader", "clue")
    first = await library.books.gather(1)
    await library.reward("reader", "knife")
    again = await library.books.gather(1)
    np.testing.assert_array_equal(first.rewards[REWARDS], again.rewards[REWARDS])
    model = await library.release()
    assert model.rewards.sum() == 1
    assert (await library.release()).rewards.sum() == 2


async def test_a_release_comes_by_the_clock(library: Library) -> None:
    books, clock = library.books, library.clock
    await library.read_by_others()
    assert not books.due(clock())
    clock.now += books.document.releases.seconds
    assert books.due(clock())


async def test_an_erased_profile_leaves_the_model(library: Library, here: None) -> None:
    await library.send("odd", "knife", "comet")
    await library.send("usual", "rocket", "orbit")
    await library.release()
    await library.send("reader", "knife")
    assert (await library.ask("reader")).items[0] == "comet"
    library.books.asked = False
    await library.books.forget("odd")
    assert library.books.asked, "so that the next release comes though nobody asks"
    await library.release()
    assert (await library.ask("stranger")).items[0] == "knife"
    found = await library.ask("reader", limit=1, candidates=["comet", "rocket"])
    assert found.items == ("rocket",)


class Tally(NullObserver):
    """Remembers what was counted and measured."""

    def __init__(self) -> None:
        self.counts: dict[tuple[FamilyCounter, str], int] = {}
        self.gauges: dict[FamilyGauge, float] = {}

    def count(
        self, *, recommender: str, what: FamilyCounter, label: str = "", amount: int = 1
    ) -> None:
        self.counts[what, label] = self.counts.get((what, label), 0) + amount

    def gauge(self, *, recommender: str, what: FamilyGauge, value: float, label: str = "") -> None:
        self.gauges[what] = value


async def test_a_training_that_fails_leaves_the_similarities_and_rewards_go_on(
    here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = Tally()
    library = Library(observer=tally)
    await library.read_by_others()
    before = await library.release()
    assert tally.counts == {(FamilyCounter.TRAININGS, "done"): 1}
    assert tally.gauges[FamilyGauge.PROFILES] == 7
    assert tally.gauges[FamilyGauge.TRAINING_SECONDS] >= 0
    await library.send("reader", "comet")
    await library.reward("reader", "clue")
    with monkeypatch.context() as broken:
        broken.setattr(TrainingProcess, "train", lambda self, **given: None)
        after = await library.release()
    assert tally.counts[FamilyCounter.TRAININGS, "failed"] == 1
    assert after.recipe == before.recipe
    assert after.rewards.sum() == 1
    assert (await library.ask("reader")).items[0] == "rocket"
    assert (await library.release()).similarities.profiles == 8, "and the next one tries again"


async def test_closing_ends_a_training(library: Library) -> None:
    await library.read_by_others()
    gathered = await library.books.gather(1)
    await library.books.close()
    model = library.books.release(library.books.current.model, gathered, library.noise)
    assert model.similarities.profiles == 0


async def test_other_parts_are_not_offered(library: Library) -> None:
    class Votes:
        PURPOSE = "votes"

    with pytest.raises(UnknownRecommender, match="not supported by collaborative: votes"):
        library.books.part(Votes)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "implicit" else find(name, *rest),
    )
    with pytest.raises(InvalidArgument, match=r"discreet\[collaborative\]") as refused:
        Library()
    assert refused.value.argument == "algorithm"
