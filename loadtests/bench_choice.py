"""CPU time of one private choice, ours beside OpenDP's, in one run.

    python loadtests/bench_choice.py [--json] [--seconds S]

For 10, 100 and 1,000 arms: the exponential mechanism, the shortlist response, and OpenDP's
`make_noisy_max` at the same epsilon and sensitivity (exponential noise for `max_divergence`,
Gumbel noise for `zero_concentrated_divergence`), each built before the clock starts. Then our
mechanism and OpenDP's on different data: all utilities equal, one peak, and random ones.

Times are process CPU time. Batches of the contenders take turns, so that whatever else the machine
is doing falls on all of them alike; the median and the lowest batch are shown. The lowest is the
steadier figure on a shared machine.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from discreet.privacy.choice import ExponentialMechanism, ShortlistResponse
from discreet.privacy.noise import SystemNoise

EPSILON = 1.0
ARMS = (10, 100, 1000)
BATCHES = 15

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Timing:
    """Microseconds of CPU for one choice."""

    mechanism: str
    arms: int
    data: str
    median: float
    lowest: float


def contenders(utilities: np.ndarray) -> dict[str, Call]:
    """Return one call for each mechanism, over the same utilities."""
    noise = SystemNoise()
    exponential = ExponentialMechanism(epsilon=EPSILON)
    shortlist = ShortlistResponse(epsilon=EPSILON)
    best, size = int(np.argmax(utilities)), len(utilities)
    # OpenDP chooses by lists of floats; both scales give epsilon 1 at sensitivity 1.
    scores = utilities.tolist()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    permute = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2 / EPSILON)
    gumbel = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=2 / EPSILON)
    return {
        "exponential": lambda: exponential.choose(utilities=utilities, noise=noise),
        "shortlist": lambda: shortlist.choose(best=best, size=size, noise=noise),
        "opendp noisy_max, exponential": lambda: permute(scores),
        "opendp noisy_max, gumbel": lambda: gumbel(scores),
    }


def microseconds(call: Call, repetitions: int) -> float:
    """Return CPU microseconds for one call."""
    start = time.process_time_ns()
    for _ in range(repetitions):
        call()
    return (time.process_time_ns() - start) / repetitions / 1000


def race(
    calls: dict[tuple[str, int, str], Call], seconds: float, advance: Callable[[], None]
) -> list[Timing]:
    """Time all calls in turns, each batch long enough for the clock's resolution."""
    repetitions = {}
    for key, call in calls.items():
        once = max(microseconds(call, 20), 0.1)
        repetitions[key] = max(5, int(seconds / BATCHES / len(calls) * 1e6 / once))
    batches: dict[tuple[str, int, str], list[float]] = {key: [] for key in calls}
    for _ in range(BATCHES):
        for key, call in calls.items():
            batches[key].append(microseconds(call, repetitions[key]))
        advance()
    return [
        Timing(*key, median=round(statistics.median(times), 1), lowest=round(min(times), 1))
        for key, times in batches.items()
    ]


def data(arms: int) -> dict[str, np.ndarray]:
    """Return utilities of three kinds."""
    peak = np.zeros(arms)
    peak[arms // 2] = 1.0
    return {
        "all equal": np.full(arms, 0.5),
        "one peak": peak,
        "random": np.random.default_rng(1).random(arms),
    }


def show(timings: list[Timing]) -> None:
    """Print the figures as a table."""
    table = Table("mechanism", "arms", "data", "median us", "lowest us")
    for timing in timings:
        table.add_row(
            timing.mechanism,
            str(timing.arms),
            timing.data,
            f"{timing.median:.1f}",
            f"{timing.lowest:.1f}",
        )
    Console().print(table)


def main() -> int:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--seconds", type=float, default=20.0, help="about how long to run")
    arguments = parser.parse_args()
    dp.enable_features("contrib")
    calls: dict[tuple[str, int, str], Call] = {}
    for arms in ARMS:
        for kind, utilities in data(arms).items():
            for name, call in contenders(utilities).items():
                calls[name, arms, kind] = call
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("racing", total=BATCHES)
        timings = race(calls, arguments.seconds, lambda: progress.advance(task))
    timings.sort(key=lambda timing: (timing.arms, timing.mechanism, timing.data))
    if arguments.json:
        print(
            json.dumps(
                {
                    "epsilon": EPSILON,
                    "opendp": version("opendp"),
                    "timings": [asdict(timing) for timing in timings],
                },
                indent=2,
            )
        )
    else:
        show(timings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
