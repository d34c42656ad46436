"""URLs of stores: what is accepted, and what is said about the rest."""

import pytest

from discreet.errors import InvalidArgument
from discreet.state.redis_store import open_store
from discreet.state.urls import Credentials, ServerAddress, StoreKind, StoreLocation, parse


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://cache", StoreLocation(StoreKind.SINGLE, (ServerAddress("cache", 6379),))),
        (
            "redis://cache:7000/3",
            StoreLocation(StoreKind.SINGLE, (ServerAddress("cache", 7000),), db=3),
        ),
        ("redis://[::1]:7000", StoreLocation(StoreKind.SINGLE, (ServerAddress("::1", 7000),))),
        (
            "redis://ada:s%40cret%3A@cache",
            StoreLocation(
                StoreKind.SINGLE,
                (ServerAddress("cache", 6379),),
                credentials=Credentials("ada", "s@cret:"),
            ),
        ),
        (
            "redis://:secret@cache/0",
            StoreLocation(
                StoreKind.SINGLE,
                (ServerAddress("cache", 6379),),
                credentials=Credentials(None, "secret"),
            ),
        ),
        ("unix:///run/a%20b.sock", StoreLocation(StoreKind.UNIX, path="/run/a b.sock")),
        (
            "unix://:secret@/run/s?db=2",
            StoreLocation(
                StoreKind.UNIX, path="/run/s", db=2, credentials=Credentials(None, "secret")
            ),
        ),
        (
            "redis+sentinel://:p@a,b:27000/main/1?sentinel_password=q",
            StoreLocation(
                StoreKind.SENTINEL,
                (ServerAddress("a", 26379), ServerAddress("b", 27000)),
                service="main",
                db=1,
                credentials=Credentials(None, "p"),
                sentinel_credentials=Credentials(None, "q"),
            ),
        ),
        (
            "redis+cluster://a,b:7001,[fe80::1]:7002",
            StoreLocation(
                StoreKind.CLUSTER,
                (
                    ServerAddress("a", 6379),
                    ServerAddress("b", 7001),
                    ServerAddress("fe80::1", 7002),
                ),
            ),
        ),
    ],
)
def test_accepted(url: str, expected: StoreLocation) -> None:
    assert parse(url) == expected


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("", "redis://"),
        ("cache:6379", "redis+cluster://"),
        ("http://cache", "rediss://"),
        ("unix+cluster:///run/s", "unix://"),
        ("redis+ring://a", "redis+sentinel://"),
        ("redis://", "host"),
        ("redis://cache:0", "65535"),
        ("redis://cache:99999", "65535"),
        ("redis://cache:port", "65535"),
        ("redis://[::1", "needs a host"),
        ("redis://cache/one", "number"),
        ("redis://cache/1/2", "too many"),
        ("redis://ada@cache", "password"),
        ("redis://:@cache", "password"),
        ("redis://a,b", "redis+sentinel://"),
        ("redis://cache?db=1", "unknown option 'db'"),
        ("redis://cache?x", "accepted are"),
        ("redis://cache?ssl_ca_certs=/ca", "unknown option"),
        ("redis://:pass#word@cache", "%23"),
        ("unix://relative/path", "absolute path"),
        ("unix:///", "absolute path"),
        ("unix:///run/s?db=1&db=2", "twice"),
        ("redis+sentinel://a", "service"),
        ("redis+cluster://a/1", "one database"),
        ("redis+cluster://a,,b", "host"),
        ("rediss://cache?ssl_ca_certs=/nowhere", "TLS file"),
        ("rediss://cache?ssl_cert_reqs=maybe", "required, none"),
        ("rediss://cache?ssl_check_hostname=1", "true, false"),
        ("rediss://cache?ssl_keyfile=/k", "ssl_certfile"),
    ],
)
def test_refused_with_a_hint(url: str, hint: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse(url)
    assert caught.value.argument == "store"
    assert hint in caught.value.reason
    assert "word" not in caught.value.reason.replace("password", "")


def test_certificates_are_checked_unless_said_otherwise() -> None:
    strict = parse("rediss://cache").tls
    assert strict is not None
    assert strict.check_hostname
    assert strict.verify_mode.name == "CERT_REQUIRED"
    lax = parse("rediss+cluster://cache?ssl_check_hostname=false").tls
    assert lax is not None
    assert not lax.check_hostname
    assert lax.verify_mode.name == "CERT_REQUIRED"
    blind = parse("rediss+sentinel://cache/main?ssl_cert_reqs=none").tls
    assert blind is not None
    assert blind.verify_mode.name == "CERT_NONE"


def test_passwords_do_not_show() -> None:
    location = parse("redis+sentinel://ada:hunter2@a/main?sentinel_password=hunter3")
    assert "hunter" not in repr(location)
    assert "hunter" not in repr(open_store("redis://:hunter2@a"))


@pytest.mark.parametrize("timeout", [0, -1, 61, float("nan")])
def test_a_timeout_that_never_or_always_fires_is_refused(timeout: float) -> None:
    with pytest.raises(InvalidArgument) as caught:
        open_store("redis://cache", timeout=timeout)
    assert caught.value.argument == "timeout"
