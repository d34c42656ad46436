"""`discreet keys`: API keys in the store, and keys that seal recommendation ids."""

import argparse
import asyncio
import base64
import os
from typing import TYPE_CHECKING

from discreet.commands.options import add_store_options, settings_of, with_store
from discreet.decisions.grants import PERSONAL_SCOPES, SCOPES
from discreet.decisions.tokens import KEY_BYTES
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.decisions.services import DecisionServices

EXAMPLES = """\
examples:
  discreet keys create --label shop --scope serve
  discreet keys create --label films --scope serve --recommender films
  discreet keys create --label ops --scope admin --scope metrics --store redis://redis:6379/0
  discreet keys list
  discreet keys revoke 1a2b3c4d5e6f
  discreet keys code --client ada --recommender films
  discreet keys code --client ada --recommender films --scope statement
  discreet keys create --label tablet --scope profile --client ada --recommender films
  discreet keys list --client ada
  export DISCREET_TOKEN_KEYS=$(discreet keys token)

A key is shown once and kept only as a digest. Running servers accept a new key, and refuse a
revoked one, as soon as the command returns.

A key with the scope profile lives on a person's device: it is bound to that client, and may send
the client's profile and ask for its recommendations, and nothing else. `keys code` prints a code
that the device trades for such a key (POST /enrolments/redeem); it works once, for ten minutes.
With the scope statement the key shows its client what was spent of their budgets: whoever has the
code opens the server's page /statement and types it in.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="make a key and print it, once")
    create.add_argument("--label", required=True, help="what it is for")
    create.add_argument(
        "--scope",
        action="append",
        required=True,
        choices=sorted(SCOPES | PERSONAL_SCOPES),
        help="what it may do; repeat for several",
    )
    code = actions.add_parser("code", help="print a code that a device trades for a key")
    code.add_argument("--client", required=True, help="the client that the key will be bound to")
    code.add_argument("--label", default="device", help="what the key will be called")
    code.add_argument(
        "--scope",
        action="append",
        choices=sorted(PERSONAL_SCOPES),
        help="what the key may do (profile); repeat for several",
    )
    for each in (create, code):
        each.add_argument(
            "--recommender",
            action="append",
            metavar="NAME",
            required=each is code,
            help="bind it to this recommender; repeat for several",
        )
    create.add_argument(
        "--rate",
        type=float,
        metavar="N",
        help="requests a second that each worker takes from it (default: the setting "
        "key_requests_per_second; of keys bound to a client, device_requests_per_second)",
    )
    create.add_argument(
        "--client", help="bind it to this client; with the scopes profile and statement"
    )
    listing = actions.add_parser("list", help="list the keys, without their secrets")
    revoke = actions.add_parser("revoke", help="refuse a key from now on")
    revoke.add_argument("id", help="the key's id, as `discreet keys list` shows it")
    actions.add_parser("token", help="print a new key for DISCREET_TOKEN_KEYS")
    for each in (listing, revoke):
        each.add_argument("--client", help="the keys on this client's devices")
    for each in (create, code, listing, revoke):
        add_store_options(each)


def run(args: argparse.Namespace) -> int:
    """Do one thing with the keys."""
    if args.action == "token":
        print(base64.b64encode(os.urandom(KEY_BYTES)).decode())
        return 0
    return asyncio.run(_act(args))


async def _act(args: argparse.Namespace) -> int:
    # Imported here: what it imports is heavy, and `keys token` needs none of it.
    from discreet.preparation import opened

    with with_store(settings_of(args)) as settings:
        async with opened(settings, carries=False) as services:
            if args.action == "create":
                print(await _create(services, args))
            elif args.action == "code":
                offered = await services.devices.offer_code(
                    client=args.client,
                    recommenders=frozenset(args.recommender),
                    label=args.label,
                    scopes=frozenset(args.scope or ("profile",)),
                )
                print(offered.code)
            elif args.action == "revoke":
                await _revoke(services, args)
            else:
                await _list(services, args)
    return 0


async def _create(services: "DecisionServices", args: argparse.Namespace) -> str:
    scopes, bound = frozenset(args.scope), args.recommender and frozenset(args.recommender)
    if scopes.isdisjoint(PERSONAL_SCOPES):
        if args.client is not None:
            raise InvalidArgument("--client", "is for keys with the scope profile or statement")
        return await services.keys.create(
            label=args.label, scopes=scopes, recommenders=bound, rate=args.rate
        )
    if not scopes <= PERSONAL_SCOPES or args.client is None or not bound:
        raise InvalidArgument(
            "--scope",
            "profile and statement go with no other scope, and need --client and --recommender",
        )
    if args.rate is not None:
        raise InvalidArgument("--rate", "devices' keys share device_requests_per_second")
    device = await services.devices.create(
        client=args.client, recommenders=bound, label=args.label, scopes=scopes
    )
    return device.key


async def _revoke(services: "DecisionServices", args: argparse.Namespace) -> None:
    if args.client is None:
        await services.keys.revoke(args.id)
    elif not await services.devices.revoke(client=args.client, device=args.id):
        raise InvalidArgument("id", "this client has no such key; `keys list --client` shows them")


async def _list(services: "DecisionServices", args: argparse.Namespace) -> None:
    if args.client is not None:
        for device in await services.devices.list(args.client):
            scopes = ",".join(sorted(device.scopes))
            print(f"{device.id}  {scopes:20}  {_bound(device.recommenders):20}  {device.label}")
        return
    for key in await services.keys.list():
        scopes = ",".join(sorted(key.scopes))
        print(f"{key.id}  {scopes:20}  {_bound(key.recommenders):20}  {key.label}")


def _bound(recommenders: frozenset[str] | None) -> str:
    return "*" if recommenders is None else ",".join(sorted(recommenders))
