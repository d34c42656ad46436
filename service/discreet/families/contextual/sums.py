"""What was released, added up; and how the next release is added to it.

Every release adds noise of the same size to what has gathered since the one before it, whether much
has gathered or little. So sums of little are worth little, and sums are added with weights. For one
entry with n records and noise of variance s, n / (n q + s) is what each record is worth (q the
variance of a reward); the weight of the old sum and that of the new one are in this proportion, and
the larger of them is 1. With exact feedback s is 0 and both weights are 1. Then
    `count`      is the sum of weights of an entry's records,
    `count2`     that of their squares,
    `variance`   the variance of the noise that is left in it.

How many records went to an item is known from what was released before: the law of an answer is a
function of the model. That is better than the noisy count alone, and both are combined.

All of it is made of released numbers and of the clock, so it costs nothing.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.families.choice import Floats

_REWARD_VARIANCE = 0.15
_PRODUCT_VARIANCE = 0.02
_LAW_ERROR = 0.5
"""How far, relatively, the law of answers may be from what was really shown: callers may offer
fewer items, ask for lists, or send no feedback."""
_SIGNIFICANT = 1.5
"""Standard deviations by which a cell stands out. An empty one that is taken for visited costs
little; where people are everywhere, a visited one that is left out costs all that was learned."""
_FEWEST = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class FreshSums:
    """What one release adds, noise included, in rows' units: a row an item that exists.

    `variance` is that of the noise in every entry of `liked` and of `disliked`, and
    `product_variance` that in the products.
    """

    slots: npt.NDArray[np.intp]
    liked: Floats
    disliked: Floats
    products: Floats
    own: Floats
    variance: float
    product_variance: float


@dataclass(frozen=True, slots=True, eq=False)
class ContextualSums:
    """Released sums: a row a slot, a column an entry of the space (or one for all of them).

    `arrivals` are the rows of all records added up, `products` their products, both with the
    weights whose sum is `seen`. `own` is what items keep of their own records, their number first;
    it has no columns if they do not.
    """

    liked: Floats
    disliked: Floats
    count: Floats
    count2: Floats
    variance: Floats
    own: Floats
    arrivals: Floats
    arrivals_variance: float
    products: Floats
    products_variance: float
    seen: float
    seen2: float
    feedback: float
    """All feedback that was released so far, noise included, and none of it faded;"""
    rewards: float
    """what it added up to;"""
    feedback_variance: float
    """and the variance of the noise in either."""
    latest: float
    """Feedback in the last release, as far as can be told;"""
    latest_variance: float
    """and the variance of the noise in an entry of it."""

    @classmethod
    def blank(
        cls, *, slots: int, entries: int, products: int, apart: bool, own: int = 0
    ) -> "ContextualSums":
        """Return nothing; `apart` if every entry is weighted by itself."""
        nothing = np.zeros((slots, entries))
        counts = nothing if apart else np.zeros((slots, 1))
        return cls(
            nothing,
            nothing,
            counts,
            counts,
            counts,
            np.zeros((slots, own)),
            np.zeros(entries),
            0.0,
            np.zeros(products),
            *(0.0,) * 8,
        )

    @property
    def slots(self) -> int:
        """How many items there is a row for."""
        return len(self.liked)

    def fitted(self, slots: int) -> "ContextualSums":
        """Return this with a row for every item of the catalogue."""
        more = max(0, slots - self.slots)
        if not more:
            return self
        padded: dict[str, Any] = {
            name: np.pad(getattr(self, name), ((0, more), (0, 0)))
            for name in ("liked", "disliked", "count", "count2", "variance", "own")
        }
        return replace(self, **padded)

    def converted(self, entries: Callable[[Floats], Floats]) -> "ContextualSums":
        """Return this in another space's entries, given the function that makes such sums."""
        names = ("liked", "disliked", "count", "count2", "variance", "arrivals")
        changed: dict[str, Any] = {name: entries(getattr(self, name)) for name in names}
        return replace(self, **changed)

    def reward_mean(self) -> float:
        """Return the mean reward, drawn to one half as far as noise could pretend."""
        doubt = 10.0 + math.sqrt(self.feedback_variance)
        mean = (max(self.rewards, 0.0) + 0.5 * doubt) / (max(self.feedback, 0.0) + doubt)
        return min(max(mean, 0.0), 1.0)

    def visits(self) -> Floats:
        """Return the visits of every entry as far as noise lets one tell, 0 where nobody came.

        Entries differ by chance, by noise, and because people come to some of them only. They are
        drawn to their mean by as much of their variance as is noise; what does not stand out then
        counts as empty. Where people are everywhere the mean is what is left, and none is empty.
        """
        told: Floats = np.maximum(self.arrivals, 0.0)
        if not self.arrivals_variance:
            return told
        noise, mean = self.arrivals_variance**0.5, float(self.arrivals.mean())
        if mean * len(self.arrivals) ** 0.5 <= _SIGNIFICANT * noise:
            return np.ones_like(told)
        spread = max(float(self.arrivals.var()) - self.arrivals_variance, 0.0)
        kept = spread / (spread + self.arrivals_variance)
        drawn = mean + kept * (self.arrivals - mean)
        found: Floats = np.where(drawn > _SIGNIFICANT * noise * kept, drawn, 0.0)
        return found if found.any() else np.ones_like(told)

    def occupied(self) -> npt.NDArray[np.bool_]:
        """Return which entries of `arrivals` somebody came to; all, if nobody did."""
        visits = self.visits()
        found: npt.NDArray[np.bool_] = visits > _FEWEST
        return found if found.any() else np.ones_like(found)

    def with_release(self, fresh: FreshSums, *, law: Floats, decay: float) -> "ContextualSums":
        """Return the sums with one more release.

        `law` is the share of answers that each item (a row) was expected to get, by column of
        `count`. `decay` is what older feedback still counts.
        """
        slots, variance = fresh.slots, fresh.variance
        shown = fresh.liked + fresh.disliked
        everybody = shown.sum(axis=0)
        apart = self.count.shape[1] > 1
        several = 2.0 * len(slots) * variance
        total = float(everybody.sum() if apart else everybody[0])
        noise_of_total = (several * (len(everybody) if apart else 1)) ** 0.5
        liked_total = float(fresh.liked.sum() if apart else fresh.liked[:, 0].sum())
        figures = {
            "feedback": self.feedback + total,
            "rewards": self.rewards + liked_total,
            "feedback_variance": self.feedback_variance + noise_of_total**2,
        }
        total = max(total, noise_of_total, 1.0)
        figures |= {"latest": total, "latest_variance": variance}
        # Who came.
        old, new = _weights(
            self.seen * decay,
            self.seen2 * decay**2,
            self.products_variance * decay**2,
            total,
            fresh.product_variance,
            _PRODUCT_VARIANCE,
        )
        old *= decay
        after = replace(
            self,
            **figures,
            arrivals=old * self.arrivals + new * everybody,
            arrivals_variance=float(old**2 * self.arrivals_variance + new**2 * several),
            products=old * self.products + new * fresh.products,
            products_variance=float(
                old**2 * self.products_variance + new**2 * fresh.product_variance
            ),
            seen=float(old * self.seen + new * total),
            seen2=float(old**2 * self.seen2 + new**2 * total),
        )
        # What they liked.
        counted = shown if apart else shown[:, :1]
        if variance:
            share = np.ones(1)
            if apart:
                occupied, share = after.occupied(), after.visits()
                share = share / max(float(share.sum()), _FEWEST)
                total = max(float(everybody[occupied].sum()), 1.0)
            expected = total * share * law[slots]
            belief = (_LAW_ERROR * expected) ** 2
            trust = belief / (belief + 2.0 * variance)
            counted = np.maximum(expected + (counted - expected) * trust, 0.0)
        else:
            counted = np.maximum(counted, 0.0)
        before = (self.count[slots], self.count2[slots], self.variance[slots])
        judged, variances = counted, variance
        if apart and variance:
            # The noise of cells is correlated, and cancels where all have the same weight.
            cells = float(after.occupied().sum())
            before = (_total(before[0]), _total(before[1]), before[2][:, :1] * cells)
            judged, variances = _total(counted), variance * cells
        olds, news = _weights(
            before[0] * decay,
            before[1] * decay**2,
            before[2] * decay**2,
            judged,
            variances,
            _REWARD_VARIANCE,
        )
        olds = olds * decay
        changed: dict[str, Any] = {}
        for name, held, added in (
            ("liked", self.liked, fresh.liked),
            ("disliked", self.disliked, fresh.disliked),
            ("count", self.count, counted),
        ):
            changed[name] = _put(held, slots, olds * held[slots] + news * added)
        for name, held, added in (
            ("count2", self.count2, counted),
            ("variance", self.variance, np.full_like(counted, variance)),
        ):
            changed[name] = _put(held, slots, olds**2 * held[slots] + news**2 * added)
        kept = np.zeros((self.slots, fresh.own.shape[1]))
        kept[slots] = fresh.own
        if self.own.shape == kept.shape:
            kept[slots] += decay * self.own[slots]
        return replace(after, **changed, own=kept)

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return everything as arrays to store."""
        return {name: np.asarray(getattr(self, name)) for name in self.__slots__}

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> "ContextualSums":
        """Return the sums of such arrays; an earlier version wrote nothing about the latest."""
        held = {"latest": np.zeros(()), "latest_variance": np.zeros(()), **arrays}
        read = {name: held[name].astype(np.float64) for name in cls.__slots__}
        return cls(
            **{name: value if value.ndim else float(value) for name, value in read.items()}  # type: ignore[arg-type]
        )


def _total(rows: Floats) -> Floats:
    total: Floats = rows.sum(axis=1, keepdims=True)
    return total


def _put(before: Floats, slots: npt.NDArray[np.intp], rows: Floats) -> Floats:
    """Return an array with these rows, and nothing about items that are gone."""
    after = np.zeros_like(before)
    after[slots] = rows
    return after


def _weights(
    count: "Floats | float",
    count2: "Floats | float",
    variance: "Floats | float",
    more: "Floats | float",
    more_variance: float,
    spread: float,
) -> tuple[Floats, Floats]:
    """Return the weights of an old sum and of a new one; the larger is 1."""
    old = np.asarray(count) / (np.asarray(count2) * spread + np.asarray(variance) + _FEWEST)
    new = np.asarray(more) / (np.asarray(more) * spread + more_variance + _FEWEST)
    if not more_variance and not np.any(variance):
        return np.ones_like(old), np.ones_like(new)
    both = np.maximum(np.maximum(old, new), _FEWEST)
    return old / both, np.where(old > 0, new / both, 1.0)
