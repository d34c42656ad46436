"""Keys, enrolment codes and devices on the wire."""

from typing import Literal

from pydantic import BaseModel, Field

from discreet.api.schemas import Body
from discreet.families.documents import Identifier

Recommenders = list[Identifier]


class EnrolmentRequest(Body):
    """Which client a device is for, and which recommenders it may speak to."""

    client: Identifier
    recommenders: Recommenders = Field(min_length=1, max_length=100)
    label: Identifier = Field(default="device", description="What the key is called in lists.")
    scopes: list[Literal["profile", "statement"]] = Field(
        default=["profile"],
        min_length=1,
        max_length=2,
        description="profile: send the client's profile and ask for recommendations; statement: "
        "read what was spent of the client's budgets.",
    )


class EnrolmentAnswer(BaseModel):
    """A code, shown once: it works once, until `expires_at`."""

    code: str
    expires_at: str


class RedeemRequest(Body):
    """The code as a person typed it: case, spaces and dashes do not matter."""

    code: str = Field(min_length=1, max_length=64)


class DeviceAnswer(BaseModel):
    """A device's own key, shown once, and what it is for."""

    id: str
    key: str
    client: str
    recommenders: list[str]
    scopes: list[str]


class ListedDevice(BaseModel):
    """A device's key without its secret."""

    id: str
    label: str
    recommenders: list[str]
    scopes: list[str]
    created_at: str


class DevicesAnswer(BaseModel):
    """A client's devices, the oldest first."""

    devices: list[ListedDevice]


class ListedKey(BaseModel):
    """An operator's key without its secret; `recommenders` null means all."""

    id: str
    label: str
    scopes: list[str]
    recommenders: list[str] | None


class KeysAnswer(BaseModel):
    """The keys that operators made."""

    keys: list[ListedKey]
