"""A key of one's own: a code from the service is traded for a key that opens one profile.

The shop shows a code to whoever is signed in; `discreet hub --code` trades it. The key is bound to
that person's client id and to the code's recommenders, and is kept beside the history, in a file
that its owner alone can read. No operator, and no key that could open anything of anybody else.
"""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from discreet.errors import InvalidArgument
from discreet.hub.errors import ServerError
from discreet.hub.folders import write_private
from discreet.hub.outgoing import KEPT, call, require_safe
from discreet.hub.server import ANSWER_SECONDS, RecommendationServer


class DeviceEnrolment(BaseModel):
    """What a code was traded for, as it is kept."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    url: str
    recommender: str
    key: str = Field(min_length=1)
    client: str = Field(min_length=1)

    def server(self) -> RecommendationServer:
        """Return the server, with this device's key."""
        return RecommendationServer(
            url=self.url, recommender=self.recommender, key=self.key, client=self.client
        )


def enrol(*, url: str, code: str, recommender: str | None) -> DeviceEnrolment:
    """Trade a code. Raises `ServerError`, or `InvalidArgument` for a code that does not fit."""
    require_safe(url, "--server")
    body = {"code": code}
    address = f"{url.rstrip('/')}/enrolments/redeem"
    status, answer = call("POST", address, body, headers={}, seconds=ANSWER_SECONDS)
    if status == 404:
        raise InvalidArgument("--code", "is not known to the server; codes work once, for minutes")
    if status >= 300:
        raise ServerError(f"The server did not take the code (status {status}). {KEPT}")
    try:
        names = [str(name) for name in answer["recommenders"]]
        name = names[0] if recommender is None and len(names) == 1 else recommender
        if name not in names:
            raise InvalidArgument("--recommender", f"must be one of {', '.join(names)}")
        return DeviceEnrolment.model_validate({**answer, "url": url, "recommender": name})
    except (KeyError, TypeError, ValidationError) as error:
        raise ServerError(f"The server's answer cannot be read. {KEPT}") from error


def _file(folder: Path, recommender: str) -> Path:
    return folder / f"device-{recommender}.json"


def keep(folder: Path, device: DeviceEnrolment) -> None:
    """Keep a device's key, for its owner alone."""
    write_private(_file(folder, device.recommender), device.model_dump_json())


def load(folder: Path, recommender: str) -> DeviceEnrolment | None:
    """Return the key that was kept for a recommender, if there is one."""
    path = _file(folder, recommender)
    if not path.exists():
        return None
    try:
        return DeviceEnrolment.model_validate(json.loads(path.read_text("utf-8")))
    except (ValueError, OSError) as error:
        raise InvalidArgument("--data", f"{path} cannot be read; enrol again") from error
