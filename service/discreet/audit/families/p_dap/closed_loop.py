"""The closed loop of the adaptive partition: stories of a small world, and what may go wrong.

Two items, two contexts, three people, a handful of rounds, with learning on.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from discreet.audit.closed_loop.stage import MadeRelease, difference_of_numbers, spread_noise
from discreet.audit.closed_loop.stories import Cast, every_story
from discreet.audit.closed_loop.story import Behaviour, Story
from discreet.audit.scripted_noise import ExactLaw, TapedNoise, coin_law
from discreet.families.choice import COIN_SIDES
from discreet.families.contract import REWARD_STEPS
from discreet.families.p_dap.model import PartitionModel
from discreet.families.questions import Ask
from discreet.privacy.choice import RESPONSE_BITS
from discreet.privacy.noise import NoiseSource

LEFT, RIGHT = 0.2, 0.8


_READ = 96
_UNREAD = RESPONSE_BITS - _READ


class PartitionLoop:
    """What a closed loop has to know about p-dap."""

    algorithm = "p-dap"

    def ask(self, name: str, client: str, situation: float) -> Ask:
        """Return a question from a context."""
        return Ask(name, client, (situation,))

    def law(self, draw: Callable[[NoiseSource], str]) -> ExactLaw:
        """Return the law of an answer that is drawn with a coin and a uniform integer.

        Of the uniform the first bits are read, the others being 0: shares are off by less than
        2**-95, a billionth of what the draw's own bias is charged. `answers` reads all of them.
        """
        law = coin_law(
            lambda coin, uniform: draw(TapedNoise(bits=(coin, uniform << _UNREAD))),
            coin_bits=COIN_SIDES.bit_length() - 1,
            uniform_bits=_READ,
        )
        bits: dict[Hashable, tuple[int, ...]] = {
            shown: (coin, uniform << _UNREAD) for shown, (coin, uniform) in law.bits.items()
        }
        return ExactLaw(law.shares, bits)

    def noise(self, path: int, release: int, scales: Sequence[float]) -> list[int]:
        """On every second path, return noise that makes cells split, and then disagree."""
        if path % 2 == 0:
            return spread_noise(path, release, scales)
        if release == 0:
            return [round(4 * scale) for scale in scales]  # as if many people had come
        signs = [(-1) ** (k + k // 2 + k // 4 + release) for k in range(len(scales))]
        return [round((4 + 4 * s) * scale) for s, scale in zip(signs, scales, strict=True)]

    def summary(self, model: PartitionModel) -> list[float]:
        """Return the sums of the first cell, and how many cells there are."""
        own = model.own.statistics
        return [*own.liked[0].tolist(), *own.disliked[0].tolist(), float(len(own.tree))]

    def difference(self, first: MadeRelease, second: MadeRelease) -> list[int] | None:
        """Compare the released sums."""
        return difference_of_numbers(first, second, numbers)


def numbers(before: PartitionModel, model: PartitionModel) -> list[int]:
    """Return both populations' sums in steps, of the cells that were there before."""
    sums = []
    for old, new in ((before.own, model.own), (before.guests, model.guests)):
        cells = len(old.statistics.tree)
        both = (new.statistics.liked, new.statistics.disliked)
        sums += [each[:cells].reshape(-1) for each in both]
    return [int(each) for each in np.rint(np.concatenate(sums) * REWARD_STEPS)]


def document(
    *,
    feedback: Any = 1.0,
    answers: Any = 0.5,
    answers_budget: float = 20.0,
    feedback_budget: float = 20.0,
    items: Sequence[str] = ("a", "b"),
    delta: float = 1e-6,
) -> dict[str, Any]:
    """Return a small p-dap document; "exact" turns a dial off."""
    return {
        "algorithm": "p-dap",
        "items": list(items),
        "context": {"dimensions": 1},
        "partition": {"base": 1},
        "exploration": {"rate": 0.1},
        "releases": {"seconds": 5, "growth": 0},
        "privacy": {
            "answers": answers
            if answers == "exact"
            else {"epsilon": answers, "budget": {"epsilon": answers_budget, "delta": delta}},
            "feedback": feedback
            if feedback == "exact"
            else {
                "epsilon": feedback,
                "delta": delta,
                "budget": {"epsilon": feedback_budget, "delta": delta},
            },
        },
    }


def _likes(favourite: str) -> Callable[[float, str], float | None]:
    return lambda _, item: float(item == favourite)


CAST = Cast(
    document=document,
    others={
        "first": Behaviour(lambda _: LEFT, _likes("a")),
        "second": Behaviour(lambda at: RIGHT if at % 2 else LEFT, lambda _, item: 0.5),
    },
    opposites=(Behaviour(lambda _: LEFT, _likes("a")), Behaviour(lambda _: RIGHT, _likes("b"))),
    tastes=(Behaviour(lambda _: LEFT, _likes("a")), Behaviour(lambda _: LEFT, _likes("b"))),
)
"""The person lives on one side and likes one item, or on the other and likes the other."""


def stories() -> Iterator[Story]:
    """Yield what may happen to the person."""
    return every_story(CAST)
