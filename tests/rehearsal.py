"""The demo's minute in one process, with what is shipped: `python -m tests.rehearsal 20`.

The demo's own document is served by the shipped decisions over the store in memory, to the crowd
that `make traffic` sends, on a simulated clock; all noise follows from the seed. The server has
waited before, as in life: for 0 to 90 seconds, by the seed. Then strangers of each of the four
tastes ask. A run convinces if each taste's favourite film is what most of its strangers get, the
personalised answers of the last ten seconds have a true regret of at most 0.24 (the best rule that
is as private has 0.205), and fewer than 5% of all answers are degraded.
"""

import argparse
import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet import configuration, demo
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.research.simulate.crowd import Crowd
from discreet.research.simulate.server import SimulatedClock, SimulatedServer
from discreet.research.simulate.traffic import CLUSTERS, DEMO_WORLD, SPREAD, Traffic
from discreet.research.simulate.traffic_results import WINDOW_SECONDS, VisitTotals
from discreet.research.worlds.environments import BumpRewards, ClusteredContexts, regret

LEAST_REGRET = 0.24
MOST_DEGRADED = 0.05
STRANGERS = 60
TOGETHER_SECONDS = 0.1
"""Visits that come within so long are asked together, as a busy worker does."""
_PLAN = Traffic(url="http://127.0.0.1:8000", key="none", recommender="films")
"""What `make traffic` sends; nothing is sent there from here."""


@dataclass(frozen=True)
class Rehearsed:
    """What came of one run; `favourites` of the four tastes got their favourite film."""

    seed: int
    favourites: int
    last: VisitTotals
    overall: VisitTotals

    @property
    def convinces(self) -> bool:
        return (
            self.favourites == CLUSTERS
            and self.last.means()["personalised_regret"] <= LEAST_REGRET
            and self.overall.means()["degraded_share"] < MOST_DEGRADED
        )


async def rehearse(seed: int, *, seconds: float = _PLAN.seconds, idle: float = 0.0) -> Rehearsed:
    """Play the demo's traffic for so many simulated seconds, after so many without any."""
    path = Path(demo.__file__).with_name("recommenders.yaml")
    document = configuration.read(path).recommenders["films"]
    films = tuple(item.id for item in document.items)
    rewards = BumpRewards(items=films, dimensions=2, seed=DEMO_WORLD)
    contexts = ClusteredContexts(dimensions=2, clusters=CLUSTERS, spread=SPREAD, seed=DEMO_WORLD)
    crowd = Crowd(contexts=contexts, clients=_PLAN.clients, name="rehearsal", seed=seed)
    clock = SimulatedClock(_PLAN.rate)
    server = await SimulatedServer.open(seed=[seed, 1], clock=clock)
    await server.put("films", document)
    last, overall = VisitTotals(), VisitTotals()
    clock.tick(int(idle * _PLAN.rate))
    together = int(_PLAN.rate * TOGETHER_SECONDS)
    batches = int(seconds / TOGETHER_SECONDS)
    for number in range(batches):
        clock.tick(together)
        await server.release_due()
        visits = [crowd.visit() for _ in range(together)]
        asks = [Ask("films", visit.client, list(visit.context)) for visit in visits]
        many = []
        for visit, answer in zip(
            visits, await server.services.recommend.recommend_many(asks), strict=True
        ):
            assert isinstance(answer, Recommendation)
            means = rewards.means(visit.context)
            place = films.index(answer.items[0])
            reward, lost = visit.reward(float(means[place])), regret(means, [place])
            many.append(Feedback(reward=reward, recommendation_id=answer.recommendation_id))
            personal = answer.personalised
            one = VisitTotals(1, int(not personal), reward, lost, lost if personal else 0.0)
            overall.add(one)
            if batches - number <= WINDOW_SECONDS / TOGETHER_SECONDS:
                last.add(one)
        await server.services.feedback.record_many(many)
    favourites = 0
    for taste, centre in enumerate(contexts.centres.round(2)):
        got: Counter[str] = Counter()
        for stranger in range(STRANGERS):
            ask = Ask("films", f"stranger {taste} {stranger}", centre.tolist())
            got[(await server.ask(ask)).items[0]] += 1
        ((most, _),) = got.most_common(1)
        favourites += most == films[int(np.argmax(rewards.means(centre)))]
    await server.close()
    return Rehearsed(seed, favourites, last, overall)


def main() -> int:
    """Rehearse with so many seeds and say how often it convinces."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int)
    runs = []
    for seed in range(parser.parse_args().seeds):
        run = asyncio.run(rehearse(seed, idle=10.0 * (seed % 10)))
        runs.append(run)
        last, overall = run.last.means(), run.overall.means()
        print(
            f"seed {seed}: {run.favourites} of {CLUSTERS} favourites, "
            f"last {WINDOW_SECONDS} s: personalised regret {last['personalised_regret']:.3f}, "
            f"reward {last['mean_reward']:.3f}; degraded {overall['degraded_share']:.1%}",
            flush=True,
        )
    print(f"{sum(run.convinces for run in runs)} of {len(runs)} convince")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
