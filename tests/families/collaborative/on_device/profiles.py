"""Small catalogues, and noise that is written down in advance."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.families.collaborative.on_device.catalogue import Catalogue
from discreet.privacy.noise import Integers

FIVE = {
    "item 1": ("1", "2", "3"),
    "item 2": ("1", "3"),
    "item 3": ("1", "3", "4"),
    "item 4": ("1", "5"),
    "item 5": ("2", "4"),
}
"""The paper's Figure 4."""


def five() -> Catalogue:
    """Return the paper's example."""
    return Catalogue.of(FIVE)


def made(*, items: int, categories: int, seed: int, most: int = 4) -> Catalogue:
    """Return a catalogue whose items have up to `most` categories, popular ones first."""
    rng = np.random.default_rng(seed)
    names = [f"c{at:02}" for at in range(categories)]
    weights: npt.NDArray[np.float64] = 1 / np.arange(1, categories + 1)
    weights /= weights.sum()
    sets = {
        f"i{at:04}": tuple(
            rng.choice(names, size=int(rng.integers(1, most + 1)), replace=False, p=weights)
        )
        for at in range(items)
    }
    for at, name in enumerate(names):
        sets[f"only {at}"] = (name,)  # so that every category has something
    return Catalogue.of(sets)


class WrittenNoise:
    """Gives the draws in order, whatever the scale, and remembers the scales."""

    production: ClassVar[bool] = False

    def __init__(self, draws: Sequence[int], bits: int = 7) -> None:
        self._draws = list(draws)
        self._bits = bits
        self.scales: list[float] = []

    def bits(self, count: int) -> int:
        """Return the same bits every time."""
        return self._bits % 2**count

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        """Return the next draws."""
        self.scales += [scale] * size
        taken, self._draws = self._draws[:size], self._draws[size:]
        assert len(taken) == size
        return np.array(taken, dtype=np.int64)

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        """Refuse: nothing here is Gaussian."""
        raise AssertionError("no Gaussian noise belongs to a profile")
