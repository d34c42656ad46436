"""`discreet keys`: API keys in the store, and keys that seal recommendation ids."""

import argparse
import asyncio
import base64
import os

from discreet.commands.options import add_store_options, settings_of, with_store
from discreet.decisions.keys import SCOPES, KeyRing
from discreet.decisions.tokens import KEY_BYTES

EXAMPLES = """\
examples:
  discreet keys create --label shop --scope serve
  discreet keys create --label ops --scope admin --scope metrics --store redis://redis:6379/0
  discreet keys list
  discreet keys revoke 1a2b3c4d5e6f
  export DISCREET_TOKEN_KEYS=$(discreet keys token)

A key is shown once and kept only as a digest. Running servers accept a new key, and refuse a
revoked one, as soon as the command returns.
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
        choices=sorted(SCOPES),
        help="what it may do; repeat for several",
    )
    listing = actions.add_parser("list", help="list the keys, without their secrets")
    revoke = actions.add_parser("revoke", help="refuse a key from now on")
    revoke.add_argument("id", help="the key's id, as `discreet keys list` shows it")
    actions.add_parser("token", help="print a new key for DISCREET_TOKEN_KEYS")
    for each in (create, listing, revoke):
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
        async with opened(settings) as services:
            keys = services.keys
            if args.action == "create":
                print(await keys.create(label=args.label, scopes=frozenset(args.scope)))
            elif args.action == "revoke":
                await keys.revoke(args.id)
            else:
                await _list(keys)
    return 0


async def _list(keys: KeyRing) -> None:
    for key in await keys.list():
        print(f"{key.id}  {','.join(sorted(key.scopes)):20}  {key.label}")
