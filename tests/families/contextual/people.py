"""Sums of people whose tastes are known, with or without noise."""

import numpy as np
import numpy.typing as npt

from discreet.families.choice import Floats
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.spaces import LinearSpace
from discreet.families.contextual.sums import ContextualSums, FreshSums

Space = CellSpace | LinearSpace


def summed(
    space: Space,
    contexts: Floats,
    means: Floats,
    *,
    seed: int,
    deviation: float = 0.0,
    shown: npt.NDArray[np.intp] | None = None,
) -> ContextualSums:
    """Return what one release holds after everybody was shown an item, at random or as `shown`.

    `means` has a column an item. Noise has `deviation` in records' units.
    """
    rng = np.random.default_rng(seed)
    people, items = means.shape
    if shown is None:
        shown = rng.integers(0, items, people)
    liked_it = (rng.random(people) < means[np.arange(people), shown]).astype(np.float64)
    rows = space.rows(contexts)
    liked, disliked = np.zeros((items, space.entries)), np.zeros((items, space.entries))
    np.add.at(liked, shown, rows * liked_it[:, None])
    np.add.at(disliked, shown, rows * (1 - liked_it)[:, None])
    products, own = np.zeros(0), np.zeros((items, space.own))
    if isinstance(space, LinearSpace):
        first, second = space.triangle
        each = rows[:, 1:][:, first] * rows[:, 1:][:, second] * space.factors
        products = each.sum(axis=0)
        if space.own:
            np.add.at(own, shown, np.hstack([np.ones((people, 1)), each]))
    noise = space.summed(deviation * rng.standard_normal((items, space.kept, 2)))
    blurred = deviation / space.products_length
    fresh = FreshSums(
        slots=np.arange(items),
        liked=liked + noise[:, :, 0],
        disliked=disliked + noise[:, :, 1],
        products=products + blurred * rng.standard_normal(products.shape),
        own=own,
        variance=(deviation * space.unit) ** 2,
        product_variance=blurred**2,
    )
    apart = isinstance(space, CellSpace)
    blank = ContextualSums.blank(
        slots=items,
        entries=space.entries,
        products=space.products,
        apart=apart,
        own=space.own,
    )
    law = np.full(blank.count.shape, 1.0 / items)
    return blank.with_release(fresh, law=law, decay=1.0)
