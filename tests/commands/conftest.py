"""Commands that tests run here wait for their store for as long as a busy machine needs."""

import pytest

from tests.waiting import PATIENT


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PATIENT.items():
        monkeypatch.setenv(name, value)
