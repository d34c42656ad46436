"""Keys: operators' keys listed and revoked; keys for people's devices, by a code that works once.

A shop's server asks for a code for whoever is signed in (scope serve); the person's device trades
it for a key of its own, with no key at all in its hand.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from discreet.api.devices_schemas import (
    DeviceAnswer,
    DevicesAnswer,
    EnrolmentAnswer,
    EnrolmentRequest,
    KeysAnswer,
    RedeemRequest,
)
from discreet.api.problems import NOT_FOUND, Refused
from discreet.api.routing import CallerGrant, DeviceKeys, OperatorKeys, ScopedRoute, described
from discreet.api.shown import moment
from discreet.decisions.grants import KeyGrant
from discreet.errors import InvalidArgument
from discreet.families.documents import Identifier

router = APIRouter(route_class=ScopedRoute, tags=["keys"])

_GIVES = ("serve", "admin")
_CLIENT = Annotated[Identifier, Query()]


@router.post(
    "/enrolments",
    status_code=201,
    response_model=EnrolmentAnswer,
    **described(_GIVES, 400, 404, 409, 413, 422, recommender_in="body"),
)
async def offer_code(devices: DeviceKeys, grant: CallerGrant, body: EnrolmentRequest) -> Any:
    """Return a code that one device of this client may trade for a key, within ten minutes."""
    for name in body.recommenders:
        grant.require_recommender(name)
    offered = await devices.offer_code(
        client=body.client,
        recommenders=frozenset(body.recommenders),
        label=body.label,
        scopes=frozenset(body.scopes),
    )
    return {"code": offered.code, "expires_at": moment(offered.expires_at)}


@router.post(
    "/enrolments/redeem",
    status_code=201,
    response_model=DeviceAnswer,
    **described(None, 400, 404, 413, 422, 503),
)
async def redeem_code(devices: DeviceKeys, body: RedeemRequest, response: Response) -> Any:
    """Trade a code for a key that is bound to the code's client. A code works once."""
    response.headers["Cache-Control"] = "no-store"
    device = await devices.redeem(body.code)
    return {
        "id": device.id,
        "key": device.key,
        "client": device.client,
        "recommenders": sorted(device.recommenders),
        "scopes": sorted(device.scopes),
    }


@router.get(
    "/devices", response_model=DevicesAnswer, **described(_GIVES, 422, recommender_in="body")
)
async def list_devices(devices: DeviceKeys, grant: CallerGrant, client: _CLIENT) -> Any:
    """List a client's devices, as far as the caller's key reaches."""
    return {
        "devices": [
            {
                "id": one.id,
                "label": one.label,
                "recommenders": sorted(one.recommenders),
                "scopes": sorted(one.scopes),
                "created_at": moment(one.created_at),
            }
            for one in await devices.list(client)
            if _reaches(grant, one.recommenders)
        ]
    }


@router.delete(
    "/devices/{device}", status_code=204, **described(_GIVES, 404, 422, recommender_in="body")
)
async def revoke_device(
    devices: DeviceKeys, grant: CallerGrant, device: str, client: _CLIENT
) -> None:
    """Refuse a device's key from now on."""
    within = [one.id for one in await devices.list(client) if _reaches(grant, one.recommenders)]
    if device not in within or not await devices.revoke(client=client, device=device):
        raise Refused(NOT_FOUND, "this client has no such device; GET /devices lists them")


@router.get("/keys", response_model=KeysAnswer, **described("admin"))
async def list_keys(keys: OperatorKeys) -> Any:
    """List the keys that operators made, without their secrets."""
    return {
        "keys": [
            {
                "id": one.id,
                "label": one.label,
                "scopes": sorted(one.scopes),
                "recommenders": None if one.recommenders is None else sorted(one.recommenders),
            }
            for one in await keys.list()
        ]
    }


@router.delete("/keys/{key}", status_code=204, **described("admin", 404, 422))
async def revoke_key(keys: OperatorKeys, key: str) -> None:
    """Refuse an operator's key from now on; no worker accepts it once this is answered."""
    try:
        await keys.revoke(key)
    except InvalidArgument:
        raise Refused(NOT_FOUND, "no such key; GET /keys lists them") from None


def _reaches(grant: KeyGrant, recommenders: frozenset[str]) -> bool:
    return grant.recommenders is None or recommenders <= grant.recommenders
