"""Settings: the file's `server:` part, then the environment, then the command line; then frozen.

Every field can be given in any of the three: `port` is `server: {port: …}`, `DISCREET_PORT` and
`--port`. Secrets can also be read from files (`DISCREET_API_KEY_FILE`), which is how orchestrators
hand them over; they never come from the command line, where every user of the machine sees them.
"""

import base64
import binascii
import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from discreet.decisions.tokens import KEY_BYTES
from discreet.errors import InvalidArgument
from discreet.families.documents import NAME_PATTERN
from discreet.peers.addresses import origin_of
from discreet.validation import explained, problems_with

PREFIX = "DISCREET_"
FEWEST_KEY_CHARACTERS = 16
"""Of a key that somebody chose. Those that `discreet keys create` makes have 46."""
FROM_FILES = ("api_key", "metrics_key", "token_keys", "peer_keys", "store")
KEY_SCOPES = frozenset({"serve", "admin"})
"""What the key in the environment may do."""


def default_workers() -> int:
    """Two at least, so that one restart is not an outage; four at most, unless asked for more."""
    return max(2, min(4, os.cpu_count() or 1))


def _keys(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    keys = []
    for text in filter(None, (part.strip() for part in value.split(","))):
        try:
            key = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
        except binascii.Error:
            raise ValueError("must be base64; `discreet keys token` prints a new key") from None
        if len(key) != KEY_BYTES:
            raise ValueError(f"each must be {KEY_BYTES} bytes; `discreet keys token` prints one")
        keys.append(key)
    return tuple(keys)


def _api_key(value: Any) -> Any:
    if isinstance(value, str):
        value = value.strip()
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise ValueError("must be printable ASCII without spaces, to fit a header")
        if not value:
            return None
        if len(value) < FEWEST_KEY_CHARACTERS:
            raise ValueError(
                f"must have at least {FEWEST_KEY_CHARACTERS} characters, and be random: "
                "`openssl rand -hex 24` prints one"
            )
    return value


def _peer_keys(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    keys: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in re.split(r"[,\n]", value))):
        name, separator, key = part.partition("=")
        name, key = name.strip(), key.strip()
        if not separator or not re.fullmatch(NAME_PATTERN, name):
            raise ValueError("must be NAME=KEY, separated by commas, with vendors' names")
        if not (key and len(key) <= 500 and key.isascii() and key.isprintable() and " " not in key):
            raise ValueError("each key must be printable ASCII without spaces, to fit a header")
        if name in keys:
            raise ValueError("each vendor may have one key")
        keys[name] = key
    return keys


def _peer_addresses(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    addresses: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (part.strip() for part in re.split(r"[,\n]", value))):
        name, separator, address = part.partition("=")
        name, address = name.strip(), address.strip()
        if not separator or not re.fullmatch(NAME_PATTERN, name) or origin_of(address) is None:
            raise ValueError("must be NAME=URL, separated by commas, with vendors' names")
        addresses[name] = (*addresses.get(name, ()), address)
    return addresses


class Settings(BaseModel):
    """How one server runs; what it recommends is in the recommenders' documents."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    host: str = Field(default="127.0.0.1", min_length=1, description="the address to listen on")
    port: int = Field(default=8000, ge=0, le=65_535, description="the port to listen on")
    workers: int = Field(default_factory=default_workers, ge=1, le=256)
    store: str | None = Field(
        default=None, repr=False, description="the store's URL; without one, an embedded Valkey"
    )
    data_dir: Path = Field(default=Path(".discreet"), description="where the embedded store lives")
    namespace: str = Field(
        default="discreet",
        pattern=r"^[A-Za-z0-9_.-]{1,64}$",
        description="prefix of every key, so that several services can share a store",
    )
    init: bool = Field(
        default=False,
        description="begin a namespace of the store that holds nothing; otherwise it is refused",
    )
    store_lost_writes: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="acknowledged writes of one of 64 shards that a failover may lose; more, and "
        "the store is refused as one that went back in time",
    )
    api_key: Annotated[str | None, BeforeValidator(_api_key)] = Field(default=None, repr=False)
    metrics_key: Annotated[str | None, BeforeValidator(_api_key)] = Field(
        default=None, repr=False, description="a key that can read /metrics and nothing else"
    )
    token_keys: Annotated[tuple[bytes, ...], BeforeValidator(_keys)] = Field(
        default=(), repr=False, description="base64, separated by commas: the first seals, all open"
    )
    peer_keys: Annotated[dict[str, str], BeforeValidator(_peer_keys)] = Field(
        default_factory=dict,
        repr=False,
        description="NAME=KEY, separated by commas: the keys that other instances issued to us",
    )
    peer_addresses: Annotated[dict[str, tuple[str, ...]], BeforeValidator(_peer_addresses)] = Field(
        default_factory=dict,
        description="NAME=URL, separated by commas: where each key may be sent, beside the "
        "addresses in the configuration file",
    )
    vendor_timeout_seconds: float = Field(
        default=0.3, gt=0, le=10, description="how long a vendor may take while a request waits"
    )
    store_timeout_seconds: float = Field(default=2.0, gt=0, le=60)
    wait_store_seconds: float = Field(default=0.0, ge=0, le=3_600)
    keep_alive_seconds: int = Field(default=75, ge=1, le=3_600)
    stop_seconds: int = Field(
        default=20, ge=1, le=3_600, description="how long requests may finish when stopping"
    )
    log_level: Literal["debug", "info", "warning", "error", "critical"] = "info"
    most_body_bytes: int = Field(default=2 * 2**20, ge=1_024, le=256 * 2**20)
    most_header_bytes: int = Field(
        default=16 * 2**10,
        ge=1_024,
        le=64 * 2**10,
        description="of a request line and its headers",
    )
    most_headers: int = Field(default=100, ge=10, le=1_000)
    header_seconds: float = Field(
        default=10.0, gt=0, le=600, description="how long a request's headers may take to arrive"
    )
    body_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3_600,
        description="how long a body may take to arrive, and an answer to be read",
    )
    most_connections: int = Field(
        default=4_096, ge=1, le=1_000_000, description="of one worker, from everywhere"
    )
    most_connections_by_address: int = Field(
        default=2_048,
        ge=1,
        le=1_000_000,
        description="of one worker, from one address (IPv6: one /64)",
    )
    most_in_flight: int = Field(
        default=512,
        ge=1,
        le=100_000,
        description="requests of one worker that are answered at the same time, at most",
    )
    busy_seconds: float = Field(
        default=0.03,
        gt=0,
        le=10,
        description="how long answers may take on average before a worker takes on less (429)",
    )
    key_requests_per_second: float | None = Field(
        default=None, gt=0, le=1e6, description="of one key, in one worker; by default unbounded"
    )
    device_requests_per_second: float | None = Field(
        default=5.0, gt=0, le=1e6, description="of the key on one device, in one worker"
    )
    http: Literal["direct", "uvicorn"] = Field(
        default="direct",
        description="uvicorn: without the short way for requests (`protocol`), to measure what it "
        "saves",
    )

    @property
    def api_keys(self) -> dict[str, frozenset[str]]:
        """The keys from the environment, with their scopes."""
        given = {self.metrics_key: frozenset({"metrics"}), self.api_key: KEY_SCOPES}
        return {key: scopes for key, scopes in given.items() if key is not None}

    @property
    def loopback(self) -> bool:
        """Tell whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that the environment gives; an empty variable gives nothing."""
    given: dict[str, Any] = {}
    for name in Settings.model_fields:
        variable = PREFIX + name.upper()
        direct = environment.get(variable) or None
        file = (environment.get(variable + "_FILE") or None) if name in FROM_FILES else None
        if direct is not None and file is not None:
            raise InvalidArgument(variable, f"give either this or {variable}_FILE, not both")
        if file is not None:
            try:
                direct = Path(file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "is not text"
                raise InvalidArgument(f"{variable}_FILE", f"cannot be read: {reason}") from None
        if direct is not None:
            given[name] = direct
    return given


def settings_from(
    *, file: Mapping[str, Any], environment: Mapping[str, str], flags: Mapping[str, Any]
) -> Settings:
    """Return the settings: flags win over the environment, and the environment over the file.

    Raises `InvalidArgument` naming the field as the source that gave it calls it.
    """
    surroundings = from_environment(environment)
    given = {**file, **surroundings, **flags}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first = explained(problems_with(error))[0]
        name = str(first["field"]).partition(".")[0]
        if name in flags:
            named = "--" + FLAGS.get(name, name.replace("_", "-"))
        elif name in surroundings:
            named = PREFIX + name.upper()
        else:
            named = f"server.{name}"
        raise InvalidArgument(named, first["message"]) from None


FLAGS = {"data_dir": "data", "wait_store_seconds": "wait-store"}
"""Settings whose flag is shorter than their name."""
