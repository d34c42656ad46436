"""What the server will be able to tell, in plain language and without promising too much.

Odds, not jargon: an epsilon-DP release moves the odds that one item is in the history by a factor
of at most e**epsilon. Somebody who held it for even chances ends at most at e**epsilon / (1 +
e**epsilon), whatever they knew besides. Percentages are rounded up, so that none is too small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What there is to say about a release, or about one that is only planned (`sent` None)."""

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
    really: int = 0
    open_items: int = 0


def surest(epsilon: float) -> int:
    """Return how sure, in per cent and rounded up, an even guess can become."""
    return min(math.ceil(100 / (1 + math.exp(-epsilon))), 100)


def tells(facts: Facts) -> list[str]:
    """Return sentences, the most important first."""
    return [*_perturbed(facts), *_openly(facts), *_hidden(facts), _always(facts)]


def _perturbed(facts: Facts) -> list[str]:
    if not facts.perturbed:
        return []
    said = [
        f"Roughly how many items you have seen in {_categories(facts.perturbed)}, give or take "
        f"about {facts.noise:.0f} each."
    ]
    if facts.sent is not None:
        drawn = facts.sent - facts.open_items
        said.append(
            f"Not the list itself. {_items(drawn)} {'was' if drawn == 1 else 'were'} drawn by lot "
            "to fit those numbers, whether you have seen them or not; "
            f"{_happen(facts.really)} to be in your history."
        )
    # The total says nothing about what once left as it was, in this release or before.
    never = " that was never sent openly" if facts.openly or facts.once_openly else ""
    said.append(
        f"Whether you have seen any one item{never}, {_degree(facts.total)}: somebody who took it "
        f"for even chances can become at most {surest(facts.epsilon)} % sure by this release, and "
        f"at most {surest(facts.total)} % by all of them together. That holds for one item at a "
        "time; of many items together it can tell more."
    )
    if 0 < facts.seen < 3 * facts.noise:
        said.append(
            "Your history is short beside that noise, so recommendations will follow it only "
            "loosely."
        )
    return said


def _openly(facts: Facts) -> list[str]:
    if not facts.openly:
        return []
    where = "" if not facts.mixed else f" in {_listed(facts.openly)}"
    except_ = " and in no other category" if facts.mixed else ""
    if facts.sent is None:
        return [f"Exactly which items you have seen{where}{except_}: those are not protected."]
    return [
        f"Exactly which {_items(facts.open_items)} you have seen{where}{except_}, and that you "
        "have seen no others there. Nothing protects those, and it cannot be taken back."
    ]


def _hidden(facts: Facts) -> list[str]:
    if not facts.perturbed and not facts.openly:
        return ["Nothing about your history: no item is sent. You get what is popular."]
    if not facts.hidden:
        return []
    return [
        f"Nothing about {_listed(facts.hidden)}: an item that is in one of these is neither sent "
        "nor counted, whatever else it is in."
    ]


def _degree(epsilon: float) -> str:
    sure = surest(epsilon)
    if sure <= 60:
        return "only a little"
    return "to some degree" if sure <= 75 else "to a large degree"


def _always(facts: Facts) -> str:
    return (
        "Besides, as every server can: your network address, when you send, and the random id "
        "that this device made up."
    )


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"


def _happen(count: int) -> str:
    if count == 0:
        return "none of them happens"
    return "1 of them happens" if count == 1 else f"{count} of them happen"


def _categories(count: int) -> str:
    return "one category" if count == 1 else f"each of {count} categories"


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more categories"
    return f"{', '.join(names[:-1])} and {names[-1]}"
