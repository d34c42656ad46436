"""Releases that protect a person: who takes part, who pays, and what is released."""

from collections.abc import Awaitable, Sequence
from typing import Any

import numpy as np
import pytest

from discreet.audit.scripted_noise import ConstantNoise
from discreet.errors import DiscreetError, StoreUnavailable
from discreet.families.fclub.by_person import GatheredPeople, PersonModel, PersonReading
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.sums import COUNT, STEPS
from discreet.families.fclub.sync.merged_model import MergedModel
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.ready import Ready
from discreet.state.stores import FeedbackRecord, Learned, Store
from discreet.store_metrics import measured
from tests.contracts.samples import OftenAsked
from tests.families.fclub.servers import (
    GENEROUS,
    LEFT,
    RIGHT,
    answer,
    built,
    local,
    own_sums,
    play,
    release,
)

pytestmark = pytest.mark.anyio

KINDS = 3
GENERATION = b"fclubper"


def server(store: Store | None = None, **changes: Any) -> ClusterRecommender:
    fields = {"learning": {"kinds": KINDS}, "privacy": GENEROUS, **changes}
    return built(local(**fields), store=store, generation=GENERATION)


def reading(recommender: ClusterRecommender) -> PersonReading:
    assert isinstance(recommender.reading, PersonReading)
    return recommender.reading


def model(recommender: ClusterRecommender) -> PersonModel:
    found = recommender.current.model
    assert isinstance(found, PersonModel)
    return found


async def spent(recommender: ClusterRecommender, client: str) -> int:
    """The rho that a client's feedback has cost, in the ledger's units."""
    (ledger,) = await recommender.store.ledgers([recommender.principal(client)])
    return ledger.feedback.nano_rho


async def gathered(recommender: ClusterRecommender, number: int) -> GatheredPeople:
    found = await recommender.gather(number)
    assert isinstance(found, GatheredPeople)
    return found


async def test_feedback_is_free_until_its_person_takes_part() -> None:
    shop = server()
    rng = np.random.default_rng(1)
    await play(shop, "ada", RIGHT, 9, rng)
    assert len((await gathered(shop, 1)).steps) == 0
    assert await spent(shop, "ada") == 0
    await play(shop, "ada", RIGHT, 1, rng)
    people = await gathered(shop, 2)
    assert people.steps.tolist() == [await own_sums(shop, "ada")]
    price = await spent(shop, "ada")
    assert price > 0
    (answers, feedback) = await shop.budgets("ada")
    assert answers.spent is None
    assert feedback.spent is not None
    assert feedback.spent.epsilon <= 20.0


async def test_a_release_that_is_repeated_is_paid_for_once() -> None:
    shop = server()
    await play(shop, "ada", RIGHT, 12, np.random.default_rng(2))
    first = await gathered(shop, 1)
    price = await spent(shop, "ada")
    again = await gathered(shop, 1)
    assert again.steps.tolist() == first.steps.tolist()
    assert await spent(shop, "ada") == price
    # Another worker goes on after a crash, and finds it paid as well.
    assert len((await gathered(built(like=shop), 1)).steps) == 1
    assert await spent(shop, "ada") == price


class ErasingStore(MemoryStore):
    """Erases own sums between the moment when a release reads them and that when it is paid."""

    def learn(
        self, records: Sequence[FeedbackRecord]
    ) -> Awaitable[Sequence[Learned | DiscreetError]]:
        for one in records:
            if b"part" in one.claim:
                self._own[GENERATION].pop(one.principal)
        return super().learn(records)


async def test_nothing_is_left_of_whoever_is_erased_while_a_release_is_paid() -> None:
    shop = server(store=ErasingStore(clock=lambda: 1000.0))
    await play(shop, "ada", RIGHT, 12, np.random.default_rng(2))
    assert len((await gathered(shop, 1)).steps) == 0
    assert await shop.store.owners(generation=GENERATION) == []


async def test_what_a_release_asks_of_the_store_does_not_tell_whether_anybody_takes_part() -> None:
    often = []
    for observations in (0, 9, 10):
        asked = OftenAsked()
        shop = server(store=measured(MemoryStore(clock=lambda: 1000.0), asked))
        if observations:
            await play(shop, "ada", RIGHT, observations, np.random.default_rng(1))
        asked.operations.clear()
        assert len((await gathered(shop, 1)).steps) == observations // 10
        often.append(asked.operations)
    assert often[0] == often[1] == often[2]
    assert often[0]["own"] == 2


async def test_a_person_takes_part_again_when_enough_has_come() -> None:
    shop = server(sharing={"growth": 0.5})
    rng = np.random.default_rng(3)
    await play(shop, "ada", RIGHT, 20, rng)
    assert len((await gathered(shop, 1)).steps) == 1
    price = await spent(shop, "ada")
    await play(shop, "ada", RIGHT, 9, rng)
    assert len((await gathered(shop, 2)).steps) == 0
    await play(shop, "ada", RIGHT, 1, rng)
    assert len((await gathered(shop, 3)).steps) == 1
    # Releases have noise of their own, so that they add up: twice the price, not four times.
    assert await spent(shop, "ada") == 2 * price


async def test_who_cannot_pay_is_left_out_and_still_served() -> None:
    private = {"feedback": {"epsilon": 20.0, "budget": {"epsilon": 21.0, "delta": 1e-6}}}
    shop = server(privacy=private)
    rng = np.random.default_rng(4)
    await play(shop, "ada", RIGHT, 10, rng)
    assert len((await gathered(shop, 1)).steps) == 1
    price = await spent(shop, "ada")
    await play(shop, "ada", RIGHT, 100, rng)
    for number in (2, 3):
        assert len((await gathered(shop, number)).steps) == 0
    assert await spent(shop, "ada") == price
    assert (await answer(shop)).decision.items == ("right",)
    # A release that is repeated does not change its mind.
    assert len((await gathered(shop, 3)).steps) == 0


async def test_of_a_payment_whose_fate_is_unknown_nothing_is_released() -> None:
    class Losing(MemoryStore):
        lost = 0

        def learn(
            self, records: Sequence[FeedbackRecord]
        ) -> Awaitable[Sequence[Learned | DiscreetError]]:
            paid = super().learn(records)
            if b"part" not in records[0].claim or self.lost:
                return paid
            self.lost += 1
            return Ready([StoreUnavailable("gone") for _ in records])

    shop = server(Losing())
    await play(shop, "ada", RIGHT, 10, np.random.default_rng(5))
    assert len((await gathered(shop, 1)).steps) == 0
    price = await spent(shop, "ada")
    assert price > 0
    # Asked again, the store says that it was paid.
    assert len((await gathered(shop, 1)).steps) == 1
    assert await spent(shop, "ada") == price


async def crowd(shop: ClusterRecommender, people: int, seed: int, rounds: int = 12) -> None:
    """People of two kinds, in turn."""
    rng = np.random.default_rng(seed)
    for number in range(people):
        await play(shop, f"user-{number}", LEFT if number % 2 else RIGHT, rounds, rng)


async def test_noise_is_drawn_for_every_number_of_every_slot() -> None:
    shop = server()
    await crowd(shop, 2, 6)
    noise = ConstantNoise()
    await release(shop, noise)
    wanted = reading(shop).noise
    assert noise.gaussian == [wanted.deviation * STEPS] * (KINDS * wanted.fields)
    # Nobody took part, and the noise is the same: whether anybody did is not told by its shape.
    empty, other = server(), ConstantNoise()
    await release(empty, other)
    assert other.gaussian == noise.gaussian


async def test_a_person_counts_the_same_however_much_they_did() -> None:
    one, other = server(), server()
    rng = np.random.default_rng(7)
    for shop, rounds in ((one, 10), (other, 200)):
        for number in range(40):
            await play(shop, f"user-{number}", RIGHT, rounds if number < 4 else 10, rng)
        await release(shop, ConstantNoise())
    for shop in (one, other):
        assert model(shop).totals[:, COUNT].sum() == pytest.approx(40 * 10, abs=1e-3)
        grams = model(shop).totals[:, 1] + model(shop).totals[:, 3]
        # Every item shown has the norm 0.9, so that the traces add up to 0.81 an observation.
        assert grams.sum() == pytest.approx(400 * 0.81, rel=0.01)


async def test_too_few_people_are_taken_for_none() -> None:
    shop = server()
    await crowd(shop, 2, 8)
    await release(shop, SeededNoise(1))
    assert not model(shop).totals.any()
    assert (model(shop).clusters, model(shop).updates) == (0, ())


async def test_kinds_are_found_and_help_whoever_comes_next() -> None:
    shop = server()
    for turn in range(3):
        await crowd(shop, 60, 9 + turn, rounds=20)
        await release(shop, SeededNoise(turn))
    vectors = model(shop).kinds.knowledge.vector
    assert set(np.sign(vectors[:, 0]).tolist()) == {-1.0, 1.0}
    rng = np.random.default_rng(12)
    await play(shop, "newcomer", LEFT, 8, rng, candidates=("left", "right"))
    assert (await answer(shop, "newcomer")).decision.items == ("left",)


async def test_updates_are_about_slots_and_get_new_numbers_with_every_release() -> None:
    shop = server()
    await crowd(shop, 60, 13)
    await release(shop, SeededNoise(1))
    first = model(shop).updates
    assert [one.number for one in first] == list(range(len(first)))
    assert all(len(one.update.members) == 1 for one in first)
    assert all(one.update.deviation == pytest.approx(model(shop).variance ** 0.5) for one in first)
    await crowd(shop, 60, 14)
    await release(shop, SeededNoise(2))
    numbers = [one.number for one in model(shop).updates]
    assert numbers[0] == len(first)
    assert model(shop).next_number == numbers[-1] + 1


async def test_what_other_servers_tell_is_another_kind_with_a_slot_of_its_own() -> None:
    shop = server()
    foreign = Knowledge(np.array([900 * np.eye(2)]), np.array([[0.0, 400.0]]))
    merged = MergedModel(3, foreign, np.array([500.0]), {})
    found = reading(shop).release(
        reading(shop).blank(),
        GatheredPeople(np.zeros((0, 6), dtype=np.int64), merged),
        ConstantNoise(),
    )
    assert (found.clusters, found.slots) == (1, (0,))
    shop.adopt(number=1, released_at=0.0, model=found)
    assert (await answer(shop, "stranger")).decision.items == ("up",)


async def test_a_model_survives_the_store() -> None:
    shop = server()
    await crowd(shop, 60, 15)
    await release(shop, SeededNoise(1))
    held = model(shop)
    again = reading(shop).decode(shop.encode(held))
    assert np.array_equal(again.totals, held.totals)
    assert (again.slots, again.next_number, again.variance, again.largest) == (
        held.slots,
        held.next_number,
        held.variance,
        held.largest,
    )
    assert np.array_equal(again.kinds.knowledge.matrix, held.kinds.knowledge.matrix)
    exact = built(local(privacy={"feedback": "exact"}))
    with pytest.raises(ValueError, match="cannot be read"):
        shop.decode(exact.encode(exact.current.model))
