"""Every family is found by the `algorithm` of its documents."""

import pytest
from pydantic import ValidationError

from discreet.families.registration import FAMILIES, every_document, read_document


def test_five_families_are_registered() -> None:
    assert set(FAMILIES) >= {"p-dap", "fclub", "mirror-descent", "p-rec", "collaborative"}


def test_a_document_is_read_by_its_algorithm() -> None:
    fields = {"algorithm": "p-dap", "context": {"dimensions": 2}}
    assert type(read_document(fields)) is FAMILIES["p-dap"].document_class


@pytest.mark.parametrize("algorithm", ["no-such", None])
def test_an_unknown_algorithm_is_refused(algorithm: str | None) -> None:
    with pytest.raises(ValidationError):
        read_document({"algorithm": algorithm})


def test_every_document_is_told_apart_by_algorithm() -> None:
    assert every_document().__metadata__[0].discriminator == "algorithm"
