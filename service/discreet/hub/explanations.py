"""What a list reveals, in plain language and without promising too much.

Odds, not jargon: an epsilon-DP release moves the odds that one item is in the history by a factor
of at most e**epsilon. Someone who guessed 50:50 ends at most at e**epsilon / (1 + e**epsilon),
whatever they knew besides. Percentages are rounded up, so that none is too small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFacts:
    """What there is to say about a list, or about one that is only planned (`sent` None).

    `perturbed` is how many categories are counted with noise of magnitude `noise`; `mixed` is
    whether some items do not go in as they are; `once_openly` whether some ever did. Of the `sent`
    items `open_items` are there as they were seen, and `in_history` are in the history by chance.
    """

    epsilon: float
    total: float
    noise: float
    perturbed: int
    hidden: Sequence[str]
    openly: Sequence[str]
    once_openly: bool
    mixed: bool
    seen: int
    sent: int | None = None
    in_history: int = 0
    open_items: int = 0


def percent(epsilon: float) -> int:
    """Return where a 50:50 guess can get to, in per cent and rounded up."""
    return min(math.ceil(100 / (1 + math.exp(-epsilon))), 100)


def explain(facts: ReleaseFacts) -> list[str]:
    """Return sentences about what the server learns, the most important first."""
    return [*_perturbed(facts), *_openly(facts), *_hidden(facts), _ALWAYS]


_ALWAYS = (
    "As every server does: your network address, when you send, and the random id that this "
    "device made up."
)


def _perturbed(facts: ReleaseFacts) -> list[str]:
    if not facts.perturbed:
        return []
    sentences = [
        f"Roughly how many items you have seen in {_categories(facts.perturbed)}, give or take "
        f"about {facts.noise:.0f} each."
    ]
    if facts.sent is not None:
        picked = facts.sent - facts.open_items
        sentences.append(
            f"Not your history itself: {_items(picked)} {'was' if picked == 1 else 'were'} picked "
            "at random to fit those numbers, whether you have seen them or not. "
            f"{_happen(facts.in_history)} to be in your history."
        )
    # The total says nothing about what was ever sent as it was.
    never = " that was never sent unprotected" if facts.openly or facts.once_openly else ""
    sentences.append(
        f"Whether you have seen any one item{never}, {_degree(facts.total)}: someone guessing "
        f"50:50 about an item could get to at most {percent(facts.epsilon)} % with this list, and "
        f"to at most {percent(facts.total)} % with all lists together. That holds for one item at "
        "a time; about many items together more can be learned."
    )
    if 0 < facts.seen < 3 * facts.noise:
        sentences.append(
            "Your history is short compared with the noise, so recommendations will follow it only "
            "loosely."
        )
    return sentences


def _openly(facts: ReleaseFacts) -> list[str]:
    if not facts.openly:
        return []
    where = f" in {_listed(facts.openly)} and in no other category" if facts.mixed else ""
    if facts.sent is None:
        return [f"Exactly which items you have seen{where}: those are not protected."]
    return [
        f"Exactly which {_items(facts.open_items)} you have seen{where}, and that you have seen no "
        "others there. Nothing protects those, and it cannot be undone."
    ]


def _hidden(facts: ReleaseFacts) -> list[str]:
    if not facts.perturbed and not facts.openly:
        return [
            "Nothing about your history: no item is sent. What is popular is put in order here."
        ]
    if not facts.hidden:
        return []
    which = "this category" if len(facts.hidden) == 1 else "one of these"
    return [
        f"Nothing about {_listed(facts.hidden)}: an item in {which} is neither sent nor counted, "
        "whatever else it is in."
    ]


def _degree(epsilon: float) -> str:
    reached = percent(epsilon)
    if reached <= 60:
        return "only a little"
    return "to some degree" if reached <= 75 else "to a large degree"


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"


def _happen(count: int) -> str:
    if count == 0:
        return "None of them happens"
    return "1 of them happens" if count == 1 else f"{count} of them happen"


def _categories(count: int) -> str:
    return "one category" if count == 1 else f"each of {count} categories"


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more categories"
    return f"{', '.join(names[:-1])} and {names[-1]}"
