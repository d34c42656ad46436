"""The paper's own way from words to an epsilon."""

import numpy as np

from discreet.families.collaborative.on_device.catalogue import PERTURBED, Concerns, Level
from discreet.families.collaborative.on_device.quantification import search
from discreet.research.published.epicrec_budget import quantified
from tests.families.collaborative.on_device.profiles import made

CATALOGUE = made(items=300, categories=6, seed=2)


def test_for_the_overall_control_it_is_what_a_hub_does() -> None:
    for seed in range(3):
        served = search(
            catalogue=CATALOGUE,
            concerns=PERTURBED,
            typical=50,
            rng=np.random.default_rng(seed),
            repeats=4,
        )
        assert served.epsilon == quantified(
            catalogue=CATALOGUE,
            concerns=PERTURBED,
            typical=50,
            rng=np.random.default_rng(seed),
            repeats=4,
        )


def test_line_7_stops_nearly_at_once() -> None:
    rng = np.random.default_rng(0)
    by_line = quantified(
        catalogue=CATALOGUE, concerns=PERTURBED, typical=50, rng=rng, rule="line 7"
    )
    by_text = quantified(catalogue=CATALOGUE, concerns=PERTURBED, typical=50, rng=rng)
    assert by_line < 0.06 < by_text


def test_by_category_hidden_items_are_counted_too() -> None:
    """The hub's search leaves them out, so that the two differ; both are of the same order."""
    concerns = Concerns.choose({"c00": Level.NO, "c01": Level.ALL})
    found = [
        find(catalogue=CATALOGUE, concerns=concerns, typical=50, rng=np.random.default_rng(1))
        for find in (quantified, lambda **given: search(**given).epsilon)
    ]
    assert found[0] != found[1]
    assert all(0.02 < epsilon < 1 for epsilon in found)
