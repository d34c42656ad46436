"""The ordinary server of the experiments: it learns from what was sent, and predicts others."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from discreet.errors import InvalidArgument
from discreet.research.reproduce.epicrec_crowd import HubCrowd, crowd_of
from discreet.research.reproduce.epicrec_server import OrdinaryRecommender, RatedPairs, ndcg


@pytest.fixture(scope="module")
def people() -> HubCrowd:
    return crowd_of("synthetic", None, 300, 0)


def test_a_history_ranks_better_than_none_and_than_somebody_elses(people: HubCrowd) -> None:
    histories = [owner.history for owner in people.owners]
    own = people.judge(histories).gains.mean()
    none = people.judge([each[:0] for each in histories]).gains.mean()
    others = people.judge([*histories[1:], histories[0]]).gains.mean()
    assert own > 1.5 * none
    assert own > 1.5 * others


def test_without_profiles_an_item_has_its_shrunken_mean_of_the_others(people: HubCrowd) -> None:
    server = OrdinaryRecommender(people.sent([owner.history[:0] for owner in people.owners]))
    predicted = server.predict(people.known, people.asked, people.parts)
    row, column = people.asked.rows[0], people.asked.columns[0]
    rest = people.known.where(people.parts[people.known.rows] != people.parts[row])
    own = rest.stars[rest.columns == column]
    overall = rest.stars.mean()
    expected = overall + (own - overall).sum() / (len(own) + 10)
    assert predicted[0] == pytest.approx(expected)


def test_an_item_is_taken_out_of_the_profile_that_is_to_predict_it(people: HubCrowd) -> None:
    """Sending what is asked as well must not give its rating away, nor change who is asked."""
    sent = [owner.history for owner in people.owners]
    ends = np.searchsorted(people.asked.rows, np.arange(len(sent) + 1))
    first = people.asked.columns[: ends[1]][:1]
    more = [np.append(sent[0], first), *sent[1:]]
    one, two = (
        # The same vectors, so that only the profile differs.
        OrdinaryRecommender(people.sent(each))
        for each in (sent, more)
    )
    two._vectors, two._centre = one._vectors, one._centre
    two._sums = np.asarray(two._sent @ one._vectors)
    asked = RatedPairs(people.asked.rows[:1], people.asked.columns[:1], people.asked.stars[:1])
    assert two._features(asked) == pytest.approx(one._features(asked))


def test_predictions_stay_within_the_stars_and_are_the_same_again(people: HubCrowd) -> None:
    sent = people.sent([owner.history for owner in people.owners])
    one, two = (
        OrdinaryRecommender(sent).predict(people.known, people.asked, people.parts)
        for _ in range(2)
    )
    assert one == pytest.approx(two)
    assert people.known.stars.min() <= one.min() <= one.max() <= people.known.stars.max()


def test_somebody_has_to_be_learned_from(people: HubCrowd) -> None:
    nobody = people.known.where(np.zeros(len(people.known.rows), dtype=np.bool_))
    with pytest.raises(InvalidArgument, match="known"):
        OrdinaryRecommender(csr_matrix((3, 4))).predict(nobody, nobody, np.zeros(3, dtype=np.int64))


def test_a_ranking_leaves_out_what_was_seen(people: HubCrowd) -> None:
    server = OrdinaryRecommender(people.sent([owner.history for owner in people.owners]))
    history = people.owners[0].history
    ranking = server.best(history, without=history)
    assert len(set(ranking.tolist())) == 10
    assert not np.isin(ranking, history).any()


def test_discounted_gain() -> None:
    ranking = np.array([5, 1, 7])
    assert ndcg(ranking, np.array([5, 1, 7, 9])) == pytest.approx(1.0)
    assert ndcg(ranking, np.array([2])) == 0.0
    assert ndcg(ranking, np.array([1])) == pytest.approx(1 / np.log2(3))
