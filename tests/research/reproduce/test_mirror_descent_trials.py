"""One reading of sparse mirror descent on one stream of records."""

from functools import partial

import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.mirror_descent_trials import MirrorTrial, side_by_side
from discreet.research.worlds.mirror_descent import social

WORLD = partial(social, records=400, dimension=400, interests=10)


def test_a_run_depends_on_its_seed_alone() -> None:
    def run(seed: int) -> list[float]:
        trial = MirrorTrial("served", WORLD, 400, seed, epsilon=1.0, topology="random", nodes=4)
        return [float(one) for one in trial.run().regret]

    assert run(1) == run(1) != run(2)


def test_too_few_records_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="rounds"):
        MirrorTrial("served", WORLD, 400, 0, epsilon=1.0, nodes=64).run()


@pytest.mark.parametrize("reading", ["served", "published", "non-private", "laplace-batches"])
def test_every_reading_counts_every_record(reading: str) -> None:
    trial = MirrorTrial(reading, WORLD, 400, 0, epsilon=1.0, nodes=4)  # type: ignore[arg-type]
    found = trial.run()
    assert found.rounds[-1] == 400
    assert 0 < found.accuracy < 1
    assert 0 < found.late_accuracy < 1


def test_a_served_node_releases_after_2_percent_4_percent_8_percent() -> None:
    # 1, 2, 4, 8, 16 and 32 of 50 seconds, and the end.
    assert MirrorTrial("served", WORLD, 400, 0, epsilon=1.0, nodes=4).run().releases == 7
    assert MirrorTrial("non-private", WORLD, 400, 0, nodes=4).run().releases == 100


def test_side_by_side_is_as_alone() -> None:
    trials = [
        MirrorTrial("published", WORLD, 400, 0, epsilon=epsilon, nodes=4, lasso=lasso)
        for epsilon, lasso in ((1.0, 0.0), (1_000.0, 0.0), (1_000.0, 5.0))
    ]
    others = [
        MirrorTrial("published", WORLD, 400, 0, epsilon=1.0, topology="random", nodes=4),
        MirrorTrial("served", WORLD, 400, 0, epsilon=1.0, nodes=4),
        MirrorTrial("served", WORLD, 400, 0, epsilon=2.0, nodes=4),
    ]
    groups = side_by_side([*trials, *others])
    assert [len(group.trials) for group in groups] == [3, 1, 1, 1]
    together = groups[0].run()
    alone = [trial.run() for trial in trials]
    assert [run.regret.tolist() for run in together] == [run.regret.tolist() for run in alone]
    assert len({run.regret[-1] for run in together}) == 3
