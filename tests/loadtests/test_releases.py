"""Every family that releases models is among the cases, and a case is really released."""

import asyncio

import pytest
import releases

from discreet.families.registration import read_document


def test_every_case_is_a_document_that_the_service_takes() -> None:
    cases = releases.cases(quick=False)
    for case in cases:
        assert read_document(case.document).algorithm == case.name.partition(",")[0]
    families = {case.document["algorithm"] for case in cases}
    # p-rec's answers are its releases.
    assert families == {"p-dap", "fclub", "mirror-descent", "collaborative"}


@pytest.mark.parametrize(
    "case",
    [releases.partition(3), releases.clusters(5), releases.mirror(100)],
    ids=lambda case: case.name,
)
def test_a_release_is_timed_and_weighed(case: releases.ReleaseCase) -> None:
    found = asyncio.run(releases.measured(case))
    assert min(found["seconds"], found["cpu_seconds"]) >= 0
    assert found["model_bytes"] > 100
    (shown,) = releases.table({case.name: found})[1:]
    assert case.name in shown
