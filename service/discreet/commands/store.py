"""`discreet store`: begin an empty store, look at one, or accept one that lost something."""

import argparse
import asyncio
import sys

from discreet.commands.options import add_store_options, settings_of, with_store
from discreet.errors import DiscreetError, InvalidArgument

EXAMPLES = """\
examples:
  discreet store init --store redis://redis:6379/0
  discreet store status
  discreet store accept --yes

A server refuses a store that is empty, or that forgot what it had acknowledged: answering from it
would let every client spend again what it has spent. `init` begins a namespace that nothing was
ever answered from. `accept` takes a store as it is, although it lost something. Everything that was
released stays released, so every client may then learn, and have learned about it, more than its
budget says: by as much as was forgotten. Whoever answers for privacy has to decide that.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    init = actions.add_parser("init", help="begin a namespace that holds nothing")
    status = actions.add_parser("status", help="say whether the store can be used")
    accept = actions.add_parser("accept", help="take a store as it is, although it lost something")
    accept.add_argument(
        "--yes", action="store_true", help="budgets may be exceeded by what was forgotten: I know"
    )
    for each in (init, status, accept):
        add_store_options(each)


def run(args: argparse.Namespace) -> int:
    """Do one thing with the store."""
    return asyncio.run(_act(args))


async def _act(args: argparse.Namespace) -> int:
    from discreet.app import marks_of
    from discreet.preparation import opened
    from discreet.state.redis_store import open_store

    if args.action == "accept" and not args.yes:
        raise InvalidArgument(
            "--yes", "is needed: every budget may be exceeded by what the store has forgotten"
        )
    with with_store(settings_of(args)) as settings:
        assert settings.store is not None
        if args.action == "accept":
            store = open_store(
                settings.store,
                namespace=settings.namespace,
                timeout=settings.store_timeout_seconds,
                marks=marks_of(settings),
            )
            try:
                accepted = await store.accept()
            finally:
                await store.close()
            print(f"accepted; the store's identity is {accepted.identity.hex()} from now on")
            return 0
        settings = settings.model_copy(update={"init": args.action == "init"})
        try:
            async with opened(settings) as services:
                await services.store.ping()
        except DiscreetError as error:
            if args.action == "init":
                raise
            print(f"refused: {error}", file=sys.stderr)
            return 1
    print("the store can be used")
    return 0
