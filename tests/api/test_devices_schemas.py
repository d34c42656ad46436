"""Keys and codes on the wire: strict in, complete out."""

import pytest
from pydantic import ValidationError

from discreet.api.devices_schemas import EnrolmentRequest, RedeemRequest


@pytest.mark.parametrize(
    "body",
    [
        {"client": "ada", "recommenders": []},
        {"client": "", "recommenders": ["films"]},
        {"client": "ada", "recommenders": ["films"], "scope": "serve"},
        {"client": "ada", "recommenders": "films"},
    ],
)
def test_an_enrolment_names_its_client_and_recommenders(body: object) -> None:
    with pytest.raises(ValidationError):
        EnrolmentRequest.model_validate(body)


def test_a_device_is_called_device_unless_named() -> None:
    asked = EnrolmentRequest.model_validate({"client": "ada", "recommenders": ["films"]})
    assert asked.label == "device"


@pytest.mark.parametrize("code", ["", "x" * 65, None])
def test_a_code_has_a_bounded_length(code: object) -> None:
    with pytest.raises(ValidationError):
        RedeemRequest.model_validate({"code": code})
