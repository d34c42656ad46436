"""Where a store is, as one line that fits an environment variable.

    redis://[user:password@]host[:6379][/db]
    rediss://…                                       the same over TLS
    unix://[user:password@]/path/to/socket[?db=0]
    redis+sentinel://[user:password@]host[:26379],host…/service[/db]
    redis+cluster://[user:password@]host[:6379],host…
    rediss+sentinel://…, rediss+cluster://…          the same over TLS

Options after `?`, named as redis-py names them:

    ssl_ca_certs, ssl_certfile, ssl_keyfile          files; TLS only
    ssl_cert_reqs=required|none                      `none` accepts any certificate
    ssl_check_hostname=true|false
    sentinel_username, sentinel_password             Sentinels may have keys of their own

The user and password are percent-encoded and never appear in a message or a representation.
"""

import ssl
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from discreet.errors import InvalidArgument

ACCEPTED = (
    "redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, redis+cluster:// "
    "and rediss+cluster://"
)


class StoreKind(Enum):
    """How the commands find their server."""

    SINGLE = "redis"
    UNIX = "unix"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """One server's address."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name and a password; a password alone belongs to the default user."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """A store's URL, read. `nodes` are servers, Sentinels or any members of the cluster."""

    kind: StoreKind
    nodes: tuple[ServerAddress, ...] = ()
    path: str = ""
    service: str = ""
    db: int = 0
    credentials: Credentials = Credentials()
    sentinel_credentials: Credentials = Credentials()
    tls: ssl.SSLContext | None = None


def refused(reason: str) -> InvalidArgument:
    """Return the error for a URL; it says what is wrong without repeating it."""
    return InvalidArgument("store", reason)


def parse(url: str) -> StoreLocation:
    """Read a store's URL, or raise `InvalidArgument` that says what would be accepted."""
    try:
        parts = _split(url)
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise refused(f"is not a URL; accepted are {ACCEPTED}") from None
    if parts.fragment:
        raise refused("has a '#' part; percent-encode '#' in a password as %23")
    options = dict(query)
    if len(options) != len(query):
        raise refused("names an option twice")
    scheme, _, topology = parts.scheme.partition("+")
    if scheme == "unix" and not topology:
        location = _unix(parts, options)
    elif scheme in ("redis", "rediss") and topology in ("", "sentinel", "cluster"):
        tls = _tls(options) if scheme == "rediss" else None
        location = _network(parts, options, StoreKind(topology or "redis"), tls)
    else:
        raise refused(f"must begin with one of {ACCEPTED}")
    if options:
        raise refused(f"has an unknown option {min(options)!r} for {parts.scheme}://")
    return location


def _split(url: str) -> SplitResult:
    """Split a URL whose authority may list several hosts.

    `urlsplit` refuses a bracketed address that is not the only host, so it never sees them here;
    `_node` shows it one at a time.
    """
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return urlsplit(url)
    ends = [rest.find(mark) for mark in "/?#" if mark in rest]
    end = min(ends, default=len(rest))
    return urlsplit(f"{scheme}://{rest[end:]}")._replace(netloc=rest[:end])


def _unix(parts: SplitResult, options: dict[str, str]) -> StoreLocation:
    credentials, rest = _credentials(parts.netloc)
    if rest or not parts.path.startswith("/") or len(parts.path) == 1:
        raise refused("must name a socket by its absolute path: unix:///path/to/socket")
    return StoreLocation(
        kind=StoreKind.UNIX,
        path=unquote(parts.path),
        db=_db(options.pop("db", "0")),
        credentials=credentials,
    )


def _network(
    parts: SplitResult, options: dict[str, str], kind: StoreKind, tls: ssl.SSLContext | None
) -> StoreLocation:
    credentials, hosts = _credentials(parts.netloc)
    nodes = tuple(
        _node(each, 26379 if kind is StoreKind.SENTINEL else 6379) for each in hosts.split(",")
    )
    path = [unquote(segment) for segment in parts.path.split("/") if segment]
    service = ""
    sentinel_credentials = Credentials()
    if kind is StoreKind.SENTINEL:
        if not path:
            raise refused("must name the monitored service: redis+sentinel://host:26379/service")
        service = path.pop(0)
        sentinel_credentials = Credentials(
            options.pop("sentinel_username", None), options.pop("sentinel_password", None)
        )
    if kind is StoreKind.SINGLE and len(nodes) > 1:
        raise refused("names several hosts; use redis+sentinel:// or redis+cluster:// for that")
    if kind is StoreKind.CLUSTER and path:
        raise refused("a cluster has one database; leave the path out")
    if len(path) > 1:
        raise refused("has a path with too many parts")
    return StoreLocation(
        kind=kind,
        nodes=nodes,
        service=service,
        db=_db(path[0] if path else "0"),
        credentials=credentials,
        sentinel_credentials=sentinel_credentials,
        tls=tls,
    )


def _credentials(netloc: str) -> tuple[Credentials, str]:
    user, at, rest = netloc.rpartition("@")
    if not at:
        return Credentials(), rest
    username, colon, password = user.partition(":")
    if not colon or not password:
        raise refused("a user needs a password: user:password@host, or :password@host")
    return Credentials(unquote(username) or None, unquote(password)), rest


def _node(text: str, default: int) -> ServerAddress:
    try:
        # urlsplit knows about ports and bracketed IPv6 addresses.
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port == 0:
        raise refused("needs a host, or host:port, with a port from 1 to 65535")
    return ServerAddress(unquote(host), port or default)


def _db(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        raise refused("the database must be a number")
    return int(text)


def _flag(options: dict[str, str], name: str, meanings: dict[str, bool]) -> bool:
    value = options.pop(name, None)
    if value is None:
        return True
    if value not in meanings:
        raise refused(f"{name} must be one of {', '.join(meanings)}")
    return meanings[value]


def _tls(options: dict[str, str]) -> ssl.SSLContext:
    authorities = options.pop("ssl_ca_certs", None)
    certificate = options.pop("ssl_certfile", None)
    key = options.pop("ssl_keyfile", None)
    verify = _flag(options, "ssl_cert_reqs", {"required": True, "none": False})
    check = _flag(options, "ssl_check_hostname", {"true": True, "false": False})
    if key and not certificate:
        raise refused("ssl_keyfile needs ssl_certfile")
    try:
        context = ssl.create_default_context(cafile=authorities)
        if certificate:
            context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise refused(f"a TLS file cannot be read ({type(error).__name__})") from None
    if not (verify and check):
        context.check_hostname = False
    if not verify:
        context.verify_mode = ssl.CERT_NONE
    return context
