"""A code is traded once for a key of this device's own, which is kept for its owner alone."""

import stat
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.hub import enrolment, views
from discreet.hub.database import Database
from discreet.hub.errors import HubRefusal, ServerError
from discreet.hub.hub import Hub
from tests.hub.recommending import KEY, NAME, Recommending

CODE = "7Q4F-9M2X-0TRW"


def test_a_code_is_traded_once(served: Recommending, tmp_path: Path) -> None:
    device = enrolment.enrol(url=served.url, code=CODE, recommender=None)
    assert (device.recommender, device.key, device.client) == (NAME, KEY, "client-17")
    with pytest.raises(InvalidArgument, match="--code"):
        enrolment.enrol(url=served.url, code=CODE, recommender=None)
    assert enrolment.load(tmp_path, NAME) is None
    enrolment.keep(tmp_path, device)
    assert enrolment.load(tmp_path, NAME) == device
    (kept,) = tmp_path.glob("device-*")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.write_text("{")
    with pytest.raises(InvalidArgument, match="enrol again"):
        enrolment.load(tmp_path, NAME)


def test_the_services_id_is_used_and_cannot_be_replaced(
    served: Recommending, tmp_path: Path
) -> None:
    device = enrolment.enrol(url=served.url, code=CODE, recommender=NAME)
    hub = Hub(Database(tmp_path, NAME), device.server())
    hub.fetch_catalogue()
    assert views.state(hub)["client"] == "client-17"
    with pytest.raises(HubRefusal, match="bound to its id"):
        hub.replace_client()


def test_what_goes_wrong_is_said(served: Recommending) -> None:
    with pytest.raises(InvalidArgument, match="must be one of films"):
        enrolment.enrol(url=served.url, code=CODE, recommender="books")
    with pytest.raises(InvalidArgument, match="must be https"):
        enrolment.enrol(url="http://recommend.example", code=CODE, recommender=None)
    for fault in ((500, b""), (201, b"{}"), (201, b"[]")):
        served.fault = fault
        with pytest.raises(ServerError):
            enrolment.enrol(url=served.url, code=CODE, recommender=None)
