"""Our learners in the suite are what is served."""

import numpy as np
import pytest

from discreet.families.registration import FAMILIES
from discreet.research.suite.served import ServedLearner, judged, suite_document
from discreet.research.suite.stretches import Stretch
from tests.research.suite.known import two_kinds

ALGORITHM = "p-dap"


def learner(answers: float | None, feedback: float | None, rate: float = 200.0) -> ServedLearner:
    return ServedLearner(algorithm=ALGORITHM, answers=answers, feedback=feedback, rate=rate)


def test_what_is_judged_is_registered() -> None:
    assert "p-dap" in judged()
    assert set(judged()) <= set(FAMILIES)


def test_a_document_has_both_dials_and_defaults() -> None:
    document = suite_document(
        algorithm=ALGORITHM, dimensions=3, items=["a", "b"], answers=2.0, feedback=None
    )
    written = document.model_dump()
    assert written["privacy"]["feedback"] == "exact"
    assert written["privacy"]["answers"]["epsilon"] == 2.0
    assert written["context"]["dimensions"] == 3


@pytest.mark.anyio
@pytest.mark.parametrize(("answers", "least"), [(None, 0.75), (2.0, 0.6)])
async def test_it_learns_who_likes_what(answers: float | None, least: float) -> None:
    """Without telling the kinds apart 0.5 is the most; the optimum at epsilon 2 earns 0.80."""
    player = learner(answers, None)
    for seed in range(2):
        stretch = two_kinds(1_000, seed=seed)
        chosen = await player.play(stretch, seed=0)
    await player.close()
    assert stretch.worth(chosen)[500:].mean() > least


def awkward(name: str) -> Stretch:
    """Return visits of a kind that real data have and that a formula may divide by."""
    rng = np.random.default_rng(9)
    rounds, dimensions, items = 250, {"one number": 1, "two numbers": 2}.get(name, 6), 4
    contexts = rng.random((rounds, dimensions))
    means = rng.random((rounds, items))
    match name:
        case "constant":
            contexts = np.tile(rng.random(dimensions), (rounds, 1))
        case "zeros":
            contexts = np.zeros_like(contexts)
        case "copies":
            contexts = np.repeat(contexts[:, :1], dimensions, axis=1)
        case "corners":
            contexts = contexts.round()
        case "one item":
            means = means[:, :1]
        case "two items":
            means = means[:, :2]
        case "never":
            means = np.zeros_like(means)
        case "always":
            means = np.ones_like(means)
        case "rarely":
            means = 0.02 * means
    return Stretch(contexts, np.arange(means.shape[1]), means, rng.random(rounds))


@pytest.mark.anyio
@pytest.mark.parametrize("algorithm", judged())
@pytest.mark.parametrize("dials", [(None, None), (2.0, None), (None, 1.0), (2.0, 1.0)])
@pytest.mark.parametrize(
    "name",
    [
        *("constant", "zeros", "copies", "corners", "one number", "two numbers"),
        *("one item", "two items", "never", "always", "rarely"),
    ],
)
async def test_awkward_data_are_answered_and_learned(
    algorithm: str, dials: tuple[float | None, float | None], name: str
) -> None:
    stretch = awkward(name)
    answers, feedback = dials
    player = ServedLearner(algorithm=algorithm, answers=answers, feedback=feedback, rate=10.0)
    chosen = await player.play(stretch, seed=0)
    assert player._server is not None
    (recommender,) = player._server.services.registry.loaded()
    assert recommender.current.number > 1  # it learned from them
    await player.close()
    assert set(chosen.tolist()) <= set(stretch.offered.tolist())
    if name in ("one item", "always"):
        assert (stretch.worth(chosen) == stretch.means.max(axis=1)).all()


@pytest.mark.anyio
async def test_the_same_seed_gives_the_same_run() -> None:
    runs = []
    for seed in (0, 0, 1):
        player = learner(2.0, 1.0)
        runs.append(await player.play(two_kinds(500), seed=seed))
        await player.close()
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.anyio
async def test_items_that_left_are_not_answered() -> None:
    player = learner(None, None)
    await player.play(two_kinds(500), seed=0)
    later = await player.play(two_kinds(500, first=2), seed=0)
    await player.close()
    assert set(later.tolist()) <= {2, 3, 4}


@pytest.mark.anyio
async def test_a_slower_clock_has_more_releases() -> None:
    releases = []
    for rate in (50.0, 5_000.0):
        player = learner(2.0, None, rate)
        await player.play(two_kinds(1_000), seed=0)
        assert player._server is not None
        (recommender,) = player._server.services.registry.loaded()
        releases.append(recommender.current.number)
        await player.close()
    assert releases[0] > releases[1]
