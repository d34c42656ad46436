"""From stories to claims: each is walked on several paths, and judged twice."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault, Scope
from discreet.audit.closed_loop.coupled import walk_paths
from discreet.audit.closed_loop.losses import Loss, judge_answers, judge_feedback
from discreet.audit.closed_loop.stage import LoopFamily, Planted
from discreet.audit.closed_loop.story import Story

QUICK, FULL = 2, 12
"""Paths of a story that are walked."""


def claims_of(stories: Iterable[Story], family: LoopFamily) -> Iterator[Claim]:
    """Yield two claims about each story: answers in epsilon, feedback in rho."""
    for story in stories:
        yield from _claims(story, family)


def _claims(story: Story, family: LoopFamily) -> Iterator[Claim]:
    @cache
    def losses(paths: int) -> tuple[Loss, ...]:
        return tuple(walk_paths(story, family, paths))

    name = f"{family.algorithm}, closed loop, {story.name}"

    def answers(run: AuditRun) -> Finding:
        return judge_answers(losses(run.size(quick=QUICK, full=FULL)))

    def feedback(run: AuditRun) -> Finding:
        return judge_feedback(losses(run.size(quick=QUICK, full=FULL)))

    if story.own_answers:
        yield Claim(f"{name}: epsilon", Method.EXACT, answers, Scope.PERSON)
    yield Claim(f"{name}: rho", Method.EXACT, feedback, Scope.PERSON)


def examine_planted(planted: Planted, story: Story, family: LoopFamily) -> Finding:
    """Examine a story with something broken in it; either claim may notice, on any path."""
    for loss in walk_paths(story, family, QUICK, planted):
        answers, feedback = judge_answers([loss]), judge_feedback([loss])
        if not (answers.holds and feedback.holds):
            break
    return answers if not answers.holds else feedback


def faults_of(
    plants: Mapping[str, tuple[Planted, str]],
    stories: Callable[[], Iterable[Story]],
    family: LoopFamily,
) -> Iterator[PlantedFault]:
    """Yield planted faults: by name, what is broken, and a part of the name of its story."""
    for name, (planted, part) in plants.items():

        def examine(_: AuditRun, planted: Planted = planted, part: str = part) -> Finding:
            return examine_planted(planted, story_named(part, stories()), family)

        yield PlantedFault(f"{family.algorithm}, closed loop: {name}", examine, Scope.PERSON)


def story_named(part: str, stories: Iterable[Story]) -> Story:
    """Return the story whose name has this in it."""
    (found,) = [story for story in stories if part in story.name]
    return found
