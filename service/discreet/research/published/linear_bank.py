"""Many ridge regressions side by side, for the paper's algorithms and its rivals.

A model knows the Gram matrix A (its regulariser included) and the moment vector c of what it has
seen; its estimate is A^-1 c. The inverse is kept beside the matrix and moved by the formula of
Sherman and Morrison, so an observation costs d^2, not d^3:

    (A + w x x^T)^-1 = A^-1 - w (A^-1 x)(A^-1 x)^T / (1 + w x^T A^-1 x).

| paper's symbol | name here | range |
|---|---|---|
| S, V + lambda I | `gram` | positive definite |
| u, b | `moment` | R^d |
| theta hat | `estimate` | R^d |
| beta | `width` | >= 0 |
| D_t | `items`, one a row | |x| <= 1 |
"""

import math

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.fclub.linear import upper_bounds

Floats = npt.NDArray[np.float64]

_REFRESH = 4096
"""Rank-one steps after which an inverse is computed anew. Rounding errors of the steps add up to
about 1e-13 of the inverse by then, so this is hygiene, not accuracy."""


class LinearBank:
    """Many models in arrays, changed in place."""

    def __init__(self, *, models: int, dimensions: int, ridge: float) -> None:
        if models < 1 or dimensions < 1:
            raise InvalidArgument("models", "there must be at least one, of at least one dimension")
        if not (math.isfinite(ridge) and ridge > 0):
            raise InvalidArgument("ridge", "must be finite and greater than 0")
        identity = np.eye(dimensions)
        self.ridge = ridge
        self.gram: Floats = np.tile(ridge * identity, (models, 1, 1))
        self.inverse: Floats = np.tile(identity / ridge, (models, 1, 1))
        self.moment: Floats = np.zeros((models, dimensions))
        self.estimate: Floats = np.zeros((models, dimensions))
        self.count: Floats = np.zeros(models)
        self._steps = [0] * models

    def __len__(self) -> int:
        return len(self.count)

    def replace(self, model: int, *, gram: Floats, moment: Floats, count: float) -> None:
        """Set a model as a whole; `gram` must be positive definite."""
        self.gram[model] = gram
        self.moment[model] = moment
        self.count[model] = count
        self._refresh(model)

    def add(self, model: int, x: Floats, y: float) -> None:
        """Learn one observation."""
        gram, moment, inverse = self.gram[model], self.moment[model], self.inverse[model]
        gram += x[:, None] * x
        moment += y * x
        self.count[model] += 1.0
        self._steps[model] += 1
        if self._steps[model] >= _REFRESH:
            self._refresh(model)
            return
        turned = inverse.dot(x)
        inverse -= turned[:, None] * (turned / (1.0 + float(turned.dot(x))))
        # For arrays this small the method `dot` takes half the time of the operator.
        inverse.dot(moment, out=self.estimate[model])

    def choose(self, model: int, items: Floats, width: float) -> int:
        """Return the row of `items` with the model's largest upper bound."""
        bounds = upper_bounds(
            items=items, estimate=self.estimate[model], inverse=self.inverse[model], width=width
        )
        return int(bounds.argmax())

    def _refresh(self, model: int) -> None:
        self.inverse[model] = np.linalg.inv(self.gram[model])
        self.estimate[model] = self.inverse[model] @ self.moment[model]
        self._steps[model] = 0
