"""`discreet decisions`: read the decision log that a recommender keeps in the store."""

import argparse
import asyncio
import sys

from discreet.commands.options import add_store_options, settings_of, with_store
from discreet.errors import InvalidArgument

EXAMPLES = """\
examples:
  discreet decisions --recommender films --store redis://redis:6379/0 > films.jsonl
  discreet evaluate --log films.jsonl --config discreet.yaml --recommender films

For recommenders with `log: {to: stream}`. With `to: file` the lines are in the folder `decisions`
of the data directory: cat .discreet/decisions/films.*.jsonl > films.jsonl
"""
_TOGETHER = 1_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--recommender", required=True, metavar="NAME", help="whose decisions")
    add_store_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print every line that is there."""
    return asyncio.run(_print(args))


async def _print(args: argparse.Namespace) -> int:
    # Imported here: what it imports is heavy, and `--help` needs none of it.
    from discreet.preparation import opened

    with with_store(settings_of(args)) as settings:
        async with opened(settings, carries=False) as services:
            found = await services.registry.find(args.recommender)
            log = found.stored.document.log
            if log is None or log.to != "stream":
                raise InvalidArgument("--recommender", "does not log decisions to the store")
            last = b""
            while lines := await services.store.read_stream(
                stream=found.decision_stream, after=last, most=_TOGETHER
            ):
                last = lines[-1][0]
                sys.stdout.write("".join(line.decode() + "\n" for _, line in lines))
    return 0
