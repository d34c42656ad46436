"""Words become an epsilon, from public facts alone."""

import inspect

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device import quantification
from discreet.families.collaborative.on_device.catalogue import (
    EVERYTHING,
    NOTHING,
    PERTURBED,
    Concerns,
    Level,
)
from discreet.families.collaborative.on_device.quantification import STEP, quantify, search
from tests.families.collaborative.on_device.profiles import five, made


def test_it_has_no_way_to_see_a_history() -> None:
    """Its inputs are the catalogue, the concerns and numbers; nothing else is read."""
    public = {"catalogue", "concerns", "typical", "step", "repeats", "rng"}
    for function in (quantify, search):
        assert set(inspect.signature(function).parameters) <= public
    source = inspect.getsource(quantification)
    assert "perturbation" not in source.split('"""', 2)[2]  # imports and code


def test_the_same_public_facts_give_the_same_epsilon() -> None:
    catalogue = made(items=300, categories=8, seed=1)
    first = quantify(catalogue=catalogue, concerns=PERTURBED, typical=50)
    assert first == quantify(catalogue=catalogue, concerns=PERTURBED, typical=50)
    assert first == round(first, 2)


def test_the_epsilon_is_moderate_and_is_the_mean_of_its_searches() -> None:
    catalogue = made(items=1_000, categories=15, seed=2)
    found = search(
        catalogue=catalogue, concerns=PERTURBED, typical=150, rng=np.random.default_rng(0)
    )
    assert len(found.searches) == 10
    assert found.epsilon == round(float(np.mean(found.searches)), 2)
    for each in found.searches:
        steps = each / STEP
        assert 2 <= round(steps) <= 50
        assert steps == pytest.approx(round(steps))
    # A search that stopped at once, as line 7 of the paper's listing would, gives 2 steps each.
    assert 0.08 <= found.epsilon <= 0.6


def test_by_category_it_looks_at_what_is_perturbed() -> None:
    catalogue = made(items=300, categories=8, seed=3)
    chosen = Concerns.choose({"c00": Level.NO, "c01": Level.ALL})
    assert quantify(catalogue=catalogue, concerns=chosen, typical=50) > 0


def test_nothing_with_noise_needs_no_epsilon() -> None:
    assert quantify(catalogue=five(), concerns=NOTHING, typical=2) == 0.0
    assert quantify(catalogue=five(), concerns=EVERYTHING, typical=2) == 0.0


@pytest.mark.parametrize("typical", [0, 6])
def test_a_typical_history_has_to_fit_the_catalogue(typical: int) -> None:
    with pytest.raises(InvalidArgument, match="typical"):
        quantify(catalogue=five(), concerns=PERTURBED, typical=typical)


def test_other_parameters_are_checked() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidArgument, match="step"):
        search(catalogue=five(), concerns=PERTURBED, typical=2, step=0.0, rng=rng)
    with pytest.raises(InvalidArgument, match="repeats"):
        search(catalogue=five(), concerns=PERTURBED, typical=2, repeats=0, rng=rng)
