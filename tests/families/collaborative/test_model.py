"""The order of answers, against sorting everything; popularity; and the way to the store."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.families.collaborative.model import (
    CollaborativeModel,
    ProfileQuestion,
    TrainingRecipe,
)
from discreet.families.collaborative.similarities import ItemSimilarities, pack


def made(rng: np.random.Generator, size: int, each: int) -> ItemSimilarities:
    """Similarities with few distinct weights and counts, so that there are many ties."""
    return ItemSimilarities(
        starts=np.arange(size + 1) * each,
        slots=np.concatenate([rng.choice(size, each, replace=False) for _ in range(size)]),
        weights=rng.integers(1, 3, size * each).astype(float),
        counts=rng.integers(0, 4, size),
        profiles=9,
    )


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_order_of_score_then_popularity_then_age(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 40))
    # The newest two items came after the training.
    similarities = made(rng, size - 2, int(rng.integers(0, 4)))
    rewards = rng.integers(0, 2, size).astype(float)
    model = CollaborativeModel(similarities, rewards, np.zeros(size))
    popular = np.concatenate([similarities.counts, [0, 0]]) + rewards
    profiles, questions, wanted = [], [], []
    for client in (b"one", b"two"):
        profile = np.sort(rng.choice(size, int(rng.integers(0, size)), replace=False))
        scores = np.zeros(size)
        for item in profile[profile < similarities.size]:
            row = slice(similarities.starts[item], similarities.starts[item + 1])
            np.add.at(scores, similarities.slots[row], similarities.weights[row])
        for limit in (1, 3, 100):
            available = np.sort(rng.choice(size, int(rng.integers(0, size)), replace=False))
            profiles.append(profile)
            questions.append(ProfileQuestion(client, limit, available))
            wanted.append(
                sorted(
                    set(available.tolist()) - set(profile.tolist()),
                    key=lambda slot: (-scores[slot], -popular[slot], slot),
                )[:limit]
            )
    ranked = model.rank(questions, profiles)
    assert [slots.tolist() for slots in ranked] == wanted


def test_slots_that_came_later_are_the_least_popular() -> None:
    counts = np.array([2, 1, 3], dtype=np.int64)
    similarities = replace(ItemSimilarities.untrained(3), counts=counts)
    model = CollaborativeModel(similarities, np.zeros(3), np.zeros(3))
    assert model.places.tolist() == [1, 2, 0]
    assert model.grown(5).places.tolist() == [1, 2, 0, 3, 4]
    assert model.grown(2) is model


def test_of_noisy_rewards_only_what_stands_out_counts() -> None:
    counts = np.array([5, 4, 0, 0], dtype=np.int64)
    similarities = replace(ItemSimilarities.untrained(4), counts=counts)
    rewards = np.array([-3.0, 2.0, 9.0, 0.0])

    def popularity(variance: float) -> list[float]:
        model = CollaborativeModel(similarities, rewards, np.full(4, variance))
        return model.popularity().tolist()

    assert popularity(0.0) == [5.0, 6.0, 9.0, 0.0]
    threshold = np.sqrt(2 * np.log(4) * 4.0)
    assert popularity(4.0) == [5.0, 4.0, 9.0 - threshold, 0.0]
    assert popularity(10.0**6) == counts.tolist()


@pytest.mark.parametrize("size", [30, 3_000])
def test_noise_alone_leaves_the_order_of_the_profiles(size: int) -> None:
    """In at least 80 of 100 seeded models; half the threshold would leave fewer than 10."""
    untouched = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        counts = rng.integers(0, 50, size)
        similarities = replace(ItemSimilarities.untrained(size), counts=counts)
        noise = rng.normal(scale=20.0, size=size)
        model = CollaborativeModel(similarities, noise, np.full(size, 400.0))
        untouched += model.popularity().tolist() == counts.tolist()
    assert untouched >= 80


def test_one_item_and_none() -> None:
    one = CollaborativeModel(ItemSimilarities.untrained(1), np.ones(1), np.ones(1))
    assert one.places.tolist() == [0]
    assert CollaborativeModel.blank(0).places.tolist() == []


def test_it_comes_back_from_the_store_as_it_went() -> None:
    similarities = made(np.random.default_rng(3), 6, 2)
    rewards = np.arange(8) / 2**20
    model = CollaborativeModel(similarities, rewards, np.full(8, 0.5), TrainingRecipe(7, 100, 9))
    after = CollaborativeModel.decode(model.encode())
    assert after.encode() == model.encode()
    assert after.recipe == model.recipe
    np.testing.assert_array_equal(after.rewards, rewards)
    np.testing.assert_array_equal(after.places, model.places)


def test_what_contradicts_itself_is_refused() -> None:
    similarities = made(np.random.default_rng(3), 6, 2)
    recipe = np.array([0, 0, 0])
    for rewards, variances in ((5, 5), (6, 7)):
        content = pack(
            {
                **similarities.arrays(),
                "rewards": np.zeros(rewards, dtype="<i8"),
                "variances": np.zeros(variances),
                "recipe": recipe,
            }
        )
        with pytest.raises(ValueError, match="contradicts itself"):
            CollaborativeModel.decode(content)
    with pytest.raises(ValueError, match="cannot be read"):
        CollaborativeModel.decode(pack(similarities.arrays()))
