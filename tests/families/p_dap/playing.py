"""A store in a dictionary, and a world of smooth preferences, to play learners in."""

from dataclasses import dataclass, field

import numpy as np

from discreet.families.p_dap.contract import (
    Address,
    Decision,
    Deeper,
    Floats,
    Learner,
    Plan,
    Request,
    Vector,
    merge,
)
from discreet.privacy.noise import NoiseSource

NOTHING: Vector = np.zeros(0, dtype=np.int64)
NOTHING.setflags(write=False)


@dataclass
class Played:
    """A learner with what it has learned, as the decisions layer would drive it."""

    learner: Learner
    state: dict[Address, Vector] = field(default_factory=dict)
    rounds: int = 0
    """How often the state was read for the last decision."""

    def read(self, plan: Plan) -> dict[Address, Vector]:
        return {address: self.state.get(address, NOTHING) for address in plan.reads}

    def decide(self, request: Request, noise: NoiseSource) -> tuple[Plan, Decision]:
        """Return the decision and the plan that it was paid by."""
        first = plan = self.learner.plan(request=request)
        for self.rounds in range(1, 20):
            step = self.learner.decide(
                state=self.read(plan), plan=plan, request=request, noise=noise
            )
            if isinstance(step, Decision):
                return first, step
            assert isinstance(step, Deeper)
            plan = step.plan
        raise AssertionError("the way down has no end")

    def learn(self, decision: Decision, reward: float, choice: int = 0) -> None:
        update = self.learner.learn(decision=decision, choice=choice, reward=reward)
        before = self.state.get(update.address, NOTHING)
        self.state[update.address] = merge(state=before, update=update)

    def survey(self) -> None:
        self.learner.survey(cells=self.state)


@dataclass(frozen=True, eq=False)
class World:
    """Clustered contexts; an arm's mean is its popularity and a bump around a place of its own."""

    seed: int
    arms: int = 20
    dimensions: int = 2
    clusters: int = 6

    def contexts(self, count: int) -> Floats:
        rng = np.random.default_rng([self.seed, 1])
        centres = rng.uniform(0.1, 0.9, (self.clusters, self.dimensions))
        which = rng.choice(self.clusters, count, p=rng.dirichlet(np.full(self.clusters, 3.0)))
        drawn = centres[which] + rng.normal(0.0, 0.07, (count, self.dimensions))
        near: Floats = np.clip(drawn, 0.0, 1.0)
        return near

    def means(self, contexts: Floats) -> Floats:
        rng = np.random.default_rng([self.seed, 2])
        places = rng.uniform(0.0, 1.0, (self.arms, self.dimensions))
        popularity = rng.uniform(0.02, 0.45, self.arms)
        heights = rng.uniform(0.25, 0.5, self.arms)
        squares = ((contexts[:, None, :] - places) ** 2).sum(axis=2)
        means: Floats = popularity + heights * np.exp(-squares / (2 * 0.3**2))
        return means


def play(played: Played, world: World, *, steps: int, noise: NoiseSource) -> tuple[float, float]:
    """Return the share of the best possible reward in the last quarter, and the whole regret.

    Surveys come quickly at first and then every 250 steps, as if by the clock.
    """
    rng = np.random.default_rng([world.seed, 3])
    contexts = world.contexts(steps)
    means = world.means(contexts)
    luck = rng.random(steps)
    available = np.arange(world.arms)
    earned = np.zeros(steps)
    due = 25
    for step in range(steps):
        if step == due:
            played.survey()
            due += min(due, 250)
        _, decision = played.decide(Request(contexts[step], available), noise)
        earned[step] = means[step, decision.choices[0].slot]
        played.learn(decision, float(luck[step] < earned[step]))
    best = means.max(axis=1)
    late = steps * 3 // 4
    return float(earned[late:].sum() / best[late:].sum()), float((best - earned).sum())
