"""Codes work once, whoever races; keys of devices are bound, listed, revoked, and never stored."""

import asyncio
import json
from typing import Any

import pytest

from discreet.decisions.devices import CODE_SECONDS, MOST_DEVICES, Devices
from discreet.decisions.services import DecisionServices
from discreet.errors import InvalidArgument, TooManyDevices, UnknownCode, UnknownRecommender
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock

pytestmark = pytest.mark.anyio
FILMS = frozenset({"films"})


async def code_for(services: DecisionServices, client: str = "ada") -> str:
    offered = await services.devices.offer_code(client=client, recommenders=FILMS, label="tablet")
    return offered.code


async def test_a_code_is_traded_for_a_bound_key(services: DecisionServices) -> None:
    device = await services.devices.redeem(await code_for(services))
    assert (device.client, device.recommenders) == ("ada", FILMS)
    grant = await services.keys.grant_of(device.key)
    assert grant is not None
    assert grant.scopes == {"profile"}
    assert grant.recommenders == FILMS
    assert grant.client is not None
    assert grant.client.admits("ada")
    assert not grant.client.admits("bob")
    [record] = await services.devices.list("ada")
    assert (record.id, record.label) == (device.id, "tablet")
    assert await services.devices.list("bob") == []


async def test_a_code_may_be_typed_carelessly(services: DecisionServices) -> None:
    code = await code_for(services)
    typed = code.lower().replace("-", " ").replace("0", "o").replace("1", "l")
    assert (await services.devices.redeem(typed)).client == "ada"


async def test_a_code_works_once_among_racers(services: DecisionServices) -> None:
    code = await code_for(services)
    traded = await asyncio.gather(
        *(services.devices.redeem(code) for _ in range(20)), return_exceptions=True
    )
    won = [one for one in traded if not isinstance(one, BaseException)]
    assert len(won) == 1
    assert all(isinstance(one, UnknownCode) for one in traded if one not in won)
    assert len(await services.devices.list("ada")) == 1
    with pytest.raises(UnknownCode):
        await services.devices.redeem(code)


@pytest.mark.parametrize("code", ["", "AAAA-AAAA-AAAA", "x" * 64, "\ud800"])
async def test_any_other_code_is_unknown(services: DecisionServices, code: str) -> None:
    await code_for(services)
    with pytest.raises(UnknownCode):
        await services.devices.redeem(code)


async def test_a_code_lapses(services: DecisionServices, clock: Clock) -> None:
    code = await code_for(services)
    clock.now += CODE_SECONDS + 1
    with pytest.raises(UnknownCode):
        await services.devices.redeem(code)


async def test_nothing_that_opens_is_stored(services: DecisionServices, store: MemoryStore) -> None:
    open_code = await code_for(services, "a-telling-client")
    device = await services.devices.redeem(await code_for(services, "a-telling-client"))
    stored = repr([vars(part) for part in _parts(store)])
    for secret in (open_code, open_code.replace("-", ""), device.key, "a-telling-client"):
        assert secret not in stored


def _parts(store: MemoryStore) -> list[Any]:
    held = [value for value in vars(store).values() if hasattr(value, "__dict__")]
    return [store, *held]


async def test_a_revoked_key_opens_nothing(services: DecisionServices) -> None:
    device = await services.devices.redeem(await code_for(services))
    assert not await services.devices.revoke(client="bob", device=device.id)
    assert not await services.devices.revoke(client="ada", device="no hex")
    assert await services.keys.grant_of(device.key) is not None
    assert await services.devices.revoke(client="ada", device=device.id)
    assert await services.keys.grant_of(device.key) is None
    assert await services.devices.list("ada") == []


async def test_revoking_all_takes_open_codes_too(services: DecisionServices) -> None:
    devices = [await services.devices.redeem(await code_for(services)) for _ in range(3)]
    open_code = await code_for(services)
    assert await services.devices.revoke_all("ada") == 3
    for device in devices:
        assert await services.keys.grant_of(device.key) is None
    with pytest.raises(UnknownCode):
        await services.devices.redeem(open_code)


async def test_a_trade_that_races_revoking_leaves_no_key(
    services: DecisionServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All keys are revoked at each single step of a trade, as another worker could."""
    write = Devices._write
    for late in (False, True):
        code = await code_for(services)
        made: list[str] = []

        async def racing(self: Devices, *given: Any, late: bool = late, made: Any = made) -> Any:
            if not late:
                await self.revoke_all("ada")
            device = await write(self, *given)
            made.append(device.key)
            if late:
                await self.revoke_all("ada")
            return device

        monkeypatch.setattr(Devices, "_write", racing)
        with pytest.raises(UnknownCode):
            await services.devices.redeem(code)
        monkeypatch.setattr(Devices, "_write", write)
        assert await services.keys.grant_of(made[0]) is None
        assert await services.devices.list("ada") == []


async def test_a_client_has_so_many_devices_and_codes(
    services: DecisionServices, clock: Clock
) -> None:
    for _ in range(MOST_DEVICES):
        await code_for(services)
    with pytest.raises(TooManyDevices):
        await code_for(services)
    await code_for(services, "bob")
    clock.now += CODE_SECONDS + 1
    await code_for(services)


async def test_a_code_is_for_recommenders_that_exist(services: DecisionServices) -> None:
    with pytest.raises(UnknownRecommender):
        await services.devices.offer_code(client="ada", recommenders=frozenset({"none"}), label="x")
    with pytest.raises(InvalidArgument, match="recommenders"):
        await services.devices.create(client="ada", recommenders=frozenset(), label="x")


@pytest.mark.parametrize("damage", [b"{", b"[]", b"[" * 200_000, b"\xff", b'{"schema": 2}'])
async def test_a_record_that_cannot_be_read_opens_nothing_and_can_be_revoked(
    services: DecisionServices, store: MemoryStore, damage: bytes
) -> None:
    made = [
        await services.devices.create(client="ada", recommenders=FILMS, label=label)
        for label in ("tablet", "phone")
    ]
    key, other = (bytes.fromhex(one.id) for one in made)
    (held,) = await store.load(keys=[key])
    assert held is not None
    if damage.startswith(b'{"'):
        damage = json.dumps({**json.loads(held.content), **json.loads(damage)}).encode()
    await store.save(key=key, content=damage)
    assert await services.keys.grant_of(made[0].key) is None
    assert await services.keys.grant_of(made[1].key) is not None
    # And so does its entry in the client's list.
    await store.put_message(queue=services.devices._queue("ada"), name=key, content=damage)
    listed = await services.devices.list("ada")
    assert {one.id for one in listed} == {key.hex(), other.hex()}
    assert await services.devices.revoke(client="ada", device=key.hex())
    await store.put_message(queue=services.devices._queue("ada"), name=key, content=damage)
    assert await services.devices.revoke_all("ada") == 2
    assert await services.keys.grant_of(made[1].key) is None
