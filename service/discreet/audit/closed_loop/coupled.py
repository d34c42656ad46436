"""Both worlds of a story in step, forced into the same view: the exact cost of telling them apart.

Given what has been seen so far, the next thing that is seen is an answer or a release. So it is
enough to look at one after the other, both worlds having shown the same until then:

- an answer to anybody else must have the same law in both worlds;
- an answer to the person has two laws, whose largest ratio is its loss; the noise of each world is
  then chosen so that both give the same answer, and the story goes on;
- a release must come at the same moment. Its numbers differ by what the person did, d, and are
  hidden by noise of scales s. The second world gets the first one's noise, moved by d, so that both
  release the very same bytes. With Gaussian noise that costs rho = sum (d / s)**2 / 2, which no
  epsilon bounds; with Laplace noise epsilon = sum |d| / s, and rho = epsilon**2 / 2. If no noise of
  the second world leads to the same bytes, nothing hides the difference, and the loss is infinite;
- all else that is seen, errors and prices and budgets, must be equal.

Where a family does not promise to protect a person from those who see the person's own answers,
these are not looked at, and may differ.

Every answer's law is read off the shipped code by noise that is written down, and every number is a
rational. What is summed up is compared with the person's ledger:

- answers: the losses of all answers, with the epsilon that the account of answers was charged;
- feedback: the rho of all releases, and their epsilon, with the mean of what the two worlds'
  accounts of feedback were charged in that column. Why the mean: if feedback moves from one release
  to another, each world's ledger pays for one release and both releases differ. So a record that
  comes or goes may cost half of one that is replaced, and no more: the length of a record, all that
  it adds, must be at most 1/sqrt(2) of how far a replacement can move the sums, or half of that
  where absolute values count. Then n records in one world and m in the other differ by at most
  (n**2 + m**2) / 2 times the rho of one, and (n + m) / 2 times its epsilon, which is the mean of
  what the two were charged. Both ledgers stay within the budget, and so does their mean.

A model that nobody has seen costs nothing: noise that died with its worker does not count. Noise
that was seen, by a worker's answers or in the store, counts whenever it was drawn.

Which answers are forced upon a story, and which noise, is a *path*; several are walked.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from typing import Any

from discreet.audit.closed_loop.losses import Loss, ToldApart
from discreet.audit.closed_loop.stage import (
    NOTHING_PLANTED,
    LoopFamily,
    MadeRelease,
    Planted,
    Stage,
)
from discreet.audit.closed_loop.story import (
    PERSON,
    Asks,
    Changes,
    Races,
    Step,
    Story,
    Tells,
    Waits,
)
from discreet.audit.enclosures import log_interval
from discreet.audit.examine_exact import both_ways, largest_ratio
from discreet.audit.scripted_noise import ExactLaw, TapedNoise
from discreet.errors import DiscreetError
from discreet.families.questions import Decision, Recommendation
from discreet.privacy.charges import NANO, UNLIMITED
from discreet.privacy.noise import NoiseSource


@dataclass(frozen=True, slots=True)
class Path:
    """Which answer is given where there is a choice; its number also chooses the noise."""

    number: int

    def answer(self, at: int, choices: int) -> int:
        """Return which of several answers, in order, is given to the question of this number."""
        if self.number < 2:
            return self.number % choices  # the first of them each time, or the second
        # Scattered, and the same in every run.
        digest = blake2b(f"{self.number} {at}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") % choices


class _Watched:
    """One of the two worlds, with what was drawn in it."""

    def __init__(self, story: Story, world: int, family: LoopFamily, planted: Planted) -> None:
        self.stage = Stage(
            family=family,
            behaviours=story.behaviours(world),
            planted=planted,
            decide_with=self._decide,
            release_with=self._release,
        )
        self.choose: Callable[[list[Any]], int] = lambda outcomes: 0
        self.laws: list[ExactLaw] = []
        self.moved_by: list[int] = []
        """What is added to the noise of releases, to end where the other world did."""
        self.noise_of: Callable[[int, Sequence[float]], list[int]] = lambda release, scales: []
        self.made: list[MadeRelease] = []
        """The releases of a step."""
        self.releases = 0
        self._known_models = 0

    def _decide(self, decide: Callable[[NoiseSource], list[Decision]]) -> list[Decision]:
        def shown(noise: NoiseSource) -> str:
            (decision,) = decide(noise)
            return " ".join(decision.items)

        law = self.stage.family.law(shown)
        self.laws.append(law)
        outcomes = sorted(law.shares, key=str)
        wanted = outcomes[self.choose(outcomes)]
        return decide(TapedNoise(bits=law.bits[wanted]))

    def _release(
        self, recommender: Any, before: Any, gathered: Any, release: Callable[[NoiseSource], Any]
    ) -> Any:
        probe = TapedNoise()
        release(probe)
        steps = self.noise_of(self.releases, probe.scales)
        self.releases += 1
        if self.moved_by:
            steps = [a + b for a, b in zip(steps, self.moved_by, strict=True)]
        made = _made(recommender, before, gathered, steps, release)
        self.made.append(made)
        return made.model

    async def seen(self) -> list[list[float]]:
        """Return the scales of the releases of this step whose models somebody has seen.

        Models of the same bytes are one: whoever made them, nothing more can be learned from two.
        """
        recommender = await self.stage.recommender()
        stored = self.stage.store.models[self._known_models :]
        self._known_models = len(self.stage.store.models)
        found: dict[bytes, list[float]] = {}
        for made in self.made:
            content = recommender.encode(made.model)
            in_use = any(each is made.model for each in self.stage.adopted)
            if in_use or any(each.endswith(content) for each in stored):
                found[content] = made.scales
        self.made = []
        return list(found.values())


def _made(
    recommender: Any,
    before: Any,
    gathered: Any,
    steps: list[int],
    release: Callable[[NoiseSource], Any],
) -> MadeRelease:
    taped = TapedNoise(steps=steps)
    model = release(taped)
    return MadeRelease(
        recommender=recommender,
        before=before,
        gathered=gathered,
        model=model,
        steps=steps,
        scales=taped.scales,
        with_steps=lambda other: release(TapedNoise(steps=other)),
    )


class CoupledWorlds:
    """Walks one path of a story in both worlds."""

    def __init__(
        self, story: Story, family: LoopFamily, path: Path, planted: Planted = NOTHING_PLANTED
    ) -> None:
        self._story = story
        self._family = family
        self._path = path
        self._worlds = [_Watched(story, world, family, planted) for world in (0, 1)]
        self._questions = 0
        self.loss = Loss()

    async def walk(self) -> Loss:
        """Play the story to its end, or until the worlds can be told apart."""
        try:
            for world in self._worlds:
                world.noise_of = partial(self._family.noise, self._path.number)
                await world.stage.open(self._story.document, self._story.workers)
            for step in self._story.steps:
                await self._take(step)
            ledgers = [await world.stage.ledger() for world in self._worlds]
            if self._story.own_answers and ledgers[0].answers != ledgers[1].answers:
                raise ToldApart("the account of answers depends on private data", feedback=False)
        except ToldApart as reason:
            self.loss.answers = None if reason.answers else self.loss.answers
            self.loss.feedback = None if reason.feedback else self.loss.feedback
            self.loss.because = str(reason)
        await self._read_ledgers()
        for world in self._worlds:
            await world.stage.close()
        return self.loss

    async def _take(self, step: Step) -> None:
        match step:
            case Asks():
                await self._ask(step)
            case Tells():
                for world in self._worlds:
                    await world.stage.tell(step)
            case Waits() | Races():
                for world in self._worlds:
                    world.stage.now += step.seconds
                await self._release(step)
            case Changes():
                for world in self._worlds:
                    await world.stage.change(step.document)

    # Answers.

    async def _ask(self, step: Asks) -> None:
        if step.client == PERSON and not self._story.own_answers:
            for world in self._worlds:
                world.choose = lambda outcomes: 0
                await world.stage.ask(step)
            return
        at, self._questions = self._questions, self._questions + 1
        shown = []
        for world in self._worlds:
            world.laws = []

            def choose(outcomes: list[Any], world: _Watched = world) -> int:
                # A retry that draws again is given another answer, so that it shows.
                return self._path.answer(at + len(world.laws) - 1, len(outcomes))

            world.choose = choose
            answers = await world.stage.ask(step)
            visible = [_visible(answer) for answer in answers]
            shown.append(([row for row, _ in visible], {token for _, token in visible}))
        if shown[0][0] != shown[1][0] or len(shown[0][1]) != len(shown[1][1]):
            raise ToldApart(
                f"what {step.client} is answered differs: {shown[0][0]}, {shown[1][0]}",
                feedback=step.client != PERSON,
            )
        # A stored answer that is repeated shows nothing; every draw that was shown counts.
        drawn = len(shown[0][1])
        laws = [world.laws[-drawn:] for world in self._worlds]
        if len(laws[0]) != len(laws[1]):
            raise ToldApart(f"{step.client} is answered by {len(laws[0])} and {len(laws[1])} draws")
        for one, other in zip(*laws, strict=True):
            ratio = largest_ratio(both_ways([(one.shares, other.shares)]))
            if step.client != PERSON and ratio != 1:
                raise ToldApart(f"the answers to {step.client} have two laws")
            if ratio is None:
                raise ToldApart(
                    "an answer to the person is impossible in one of the worlds", feedback=False
                )
            assert self.loss.answers is not None
            self.loss.answers += log_interval(ratio).high if ratio != 1 else 0

    # Releases.

    async def _release(self, step: Waits | Races) -> None:
        first, second = self._worlds
        first.moved_by = []
        released = await self._run_release(first, step)
        made = list(first.made)
        worker = step.worker if isinstance(step, Waits) else 0
        second.moved_by = await self._difference(worker, made[0]) if made else []
        also = await self._run_release(second, step)
        if released != also or len(made) != len(second.made):
            raise ToldApart("a release comes at another moment", answers=False)
        if first.stage.store.models != second.stage.store.models:
            raise ToldApart("no noise leads to the same released model", answers=False)
        ours, theirs = await first.seen(), await second.seen()
        if ours != theirs:
            raise ToldApart("other models are seen", answers=False)
        for scales in ours:
            self.loss.add_release(second.moved_by, scales)

    async def _run_release(self, world: _Watched, step: Waits | Races) -> bool:
        if isinstance(step, Races):
            await world.stage.race()
            return True
        world.stage.store.lose_next(step.lost)
        released = await world.stage.release(step.worker)
        world.stage.store.lose_next(None)
        return released

    async def _difference(self, worker: int, first: MadeRelease) -> list[int]:
        """Return what must be added to the noise of the second world to end in the same model.

        The second world's next model is made with the first one's noise, which nobody sees:
        gathering is repeatable, and nothing of this is stored. Whatever is found here, the worlds
        must then really release the same bytes.
        """
        recommender = await self._worlds[1].stage.recommender(worker)
        before = recommender.current
        gathered = await recommender.gather(before.number + 1)
        second = _made(
            recommender,
            before.model,
            gathered,
            first.steps,
            lambda noise: recommender.release_unwatched(before.model, gathered, noise),
        )
        found = None
        if first.scales == second.scales:
            found = self._family.difference(first, second)
        if found is None:
            raise ToldApart("no noise can hide the difference", answers=False)
        return found

    # Ledgers.

    async def _read_ledgers(self) -> None:
        ledgers = [await world.stage.ledger() for world in self._worlds]
        answers = [ledger.answers.nano_epsilon for ledger in ledgers]
        self.loss.answers_charged = None if UNLIMITED in answers else Fraction(min(answers), NANO)
        self.loss.feedback_charged = _mean([ledger.feedback.nano_rho for ledger in ledgers])
        self.loss.feedback_epsilon_charged = _mean(
            [ledger.feedback.nano_epsilon for ledger in ledgers]
        )


def _mean(charged: Sequence[int]) -> Fraction | None:
    return None if UNLIMITED in charged else Fraction(sum(charged), len(charged) * NANO)


def _visible(answer: Recommendation | DiscreetError) -> tuple[Any, Any]:
    """Return what of an answer is seen, and its token, which differs every time."""
    if isinstance(answer, DiscreetError):
        return (type(answer).__name__, str(answer)), None
    # The token itself is sealed; its length is not.
    shown = answer._replace(recommendation_id=f"{len(answer.recommendation_id)} characters")
    return shown, answer.recommendation_id


def walk_paths(
    story: Story, family: LoopFamily, paths: int, planted: Planted = NOTHING_PLANTED
) -> Iterator[Loss]:
    """Yield what each of the first few paths of a story costs."""

    async def walk(number: int) -> Loss:
        return await CoupledWorlds(story, family, Path(number), planted).walk()

    for number in range(paths):
        yield asyncio.run(walk(number))
