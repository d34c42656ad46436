"""The ordinary server of the experiments: it learns, and answers those it has never met."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.epicrec_server import OrdinaryRecommender, ndcg
from discreet.research.worlds.rated import RatedCatalogue, crowd


@pytest.fixture(scope="module")
def rated() -> RatedCatalogue:
    return crowd(people=300, items=300)


def test_a_history_predicts_better_than_none_and_ranks_better(rated: RatedCatalogue) -> None:
    """Over 60 people it never met: their own history against no history, and somebody else's."""
    learned_from = np.arange(rated.people) >= 60
    server = OrdinaryRecommender.learn(rated, learned_from)
    rng = np.random.default_rng(0)
    gains: dict[str, list[float]] = {"own": [], "none": [], "other": []}
    for who in range(60):
        mine = rng.permutation(rated.columns[rated.rows == who])
        held_out, history = mine[: len(mine) // 5], mine[len(mine) // 5 :]
        other = rated.columns[rated.rows == (who + 1) % 60]
        for name, profile in (("own", history), ("none", history[:0]), ("other", other)):
            ranking = server.best(profile, without=history)
            assert len(set(ranking.tolist())) == 10
            assert not np.isin(ranking, history).any()
            gains[name].append(ndcg(ranking, held_out))
    assert np.mean(gains["own"]) > 1.5 * np.mean(gains["none"])
    assert np.mean(gains["own"]) > 1.5 * np.mean(gains["other"])


def test_without_a_profile_an_item_has_its_shrunken_mean(rated: RatedCatalogue) -> None:
    server = OrdinaryRecommender.learn(rated, np.ones(rated.people, dtype=np.bool_))
    nobody = np.zeros(0, dtype=np.int64)
    column = int(np.bincount(rated.columns).argmax())
    own = rated.stars[rated.columns == column]
    overall = rated.stars.mean()
    expected = overall + (own - overall).sum() / (len(own) + 10)
    assert server.ratings(nobody, np.array([column]))[0] == pytest.approx(expected)


def test_predictions_stay_within_the_stars(rated: RatedCatalogue) -> None:
    server = OrdinaryRecommender.learn(rated, np.ones(rated.people, dtype=np.bool_))
    everything = np.arange(len(rated.catalogue.items))
    predicted = server.ratings(everything[:100], everything)
    assert predicted.min() >= 1
    assert predicted.max() <= 5


def test_learning_twice_gives_the_same(rated: RatedCatalogue) -> None:
    marked = np.arange(rated.people) % 2 == 0
    one, two = OrdinaryRecommender.learn(rated, marked), OrdinaryRecommender.learn(rated, marked)
    profile = np.arange(20)
    assert np.array_equal(one.best(profile, without=profile), two.best(profile, without=profile))
    assert one.ratings(profile, profile) == pytest.approx(two.ratings(profile, profile))


def test_somebody_has_to_be_learned_from(rated: RatedCatalogue) -> None:
    with pytest.raises(InvalidArgument, match="people"):
        OrdinaryRecommender.learn(rated, np.zeros(rated.people, dtype=np.bool_))


def test_discounted_gain() -> None:
    ranking = np.array([5, 1, 7])
    assert ndcg(ranking, np.array([5, 1, 7, 9])) == pytest.approx(1.0)
    assert ndcg(ranking, np.array([2])) == 0.0
    assert ndcg(ranking, np.array([1])) == pytest.approx(1 / np.log2(3))
