"""The `discreet` command: one module in `discreet.commands` for each subcommand.

A subcommand's module has `configure(parser)` and `run(args) -> exit code`. Only the one that was
asked for is imported, so that `discreet serve` does not carry what `discreet simulate` needs.
"""

import argparse
import gc
import sys
from collections.abc import Sequence
from importlib import import_module

from discreet import __version__
from discreet.errors import DiscreetError, InvalidArgument

COMMANDS = (
    ("serve", "answer requests over HTTP"),
    ("hub", "keep a history on this device, and send only what its owner agreed to"),
    ("keys", "make, list and revoke API keys; make token keys"),
    ("items", "import a catalogue from a file into a running server, or export it"),
    ("store", "begin an empty store, look at one, or accept one that lost something"),
    ("audit", "check every privacy claim, and that planted faults are caught"),
    ("decisions", "print the decisions that a recommender logged to the store"),
    ("evaluate", "estimate from a log what recommenders would earn, and how sure that is"),
    ("simulate", "choose an epsilon on synthetic or logged data, or send synthetic traffic"),
    ("reproduce", "repeat a paper's evaluation; its numbers beside ours"),
    ("size", "how many workers, and how much memory and disk, so many requests need"),
    ("voters", "choose the parameters of p-REC: peers for an epsilon, or epsilon for peers"),
)

EXAMPLES = """\
examples:
  discreet serve --demo                          the demo, on an embedded store, at port 8000
  discreet serve --config discreet.yaml --store redis://redis:6379/0
  discreet keys create --label shop --scope serve
  discreet items import films.csv --recommender films
  discreet simulate --traffic                    a minute of synthetic visitors for the demo
  discreet audit --quick

`discreet COMMAND --help` says more about each.
"""

USAGE_ERROR = 2

EXTRAS = {"audit": "audit", "reproduce": "research"}
"""What to install for a command that does not work with the plain package alone."""


_OURS = ("discreet", "discreet_client")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    gc.disable()  # while modules are loaded, of which nothing is garbage
    try:
        parser = _parser(arguments)
    finally:
        gc.enable()
    args = parser.parse_args(arguments)
    if args.command is None:
        parser.print_help()
        return USAGE_ERROR
    try:
        code: int = args.run(args)
    except InvalidArgument as error:
        return _complain(f"{error.argument}: {error.reason}")
    except DiscreetError as error:
        return _complain(str(error))
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(args.command)
        if extra is None or (error.name or "discreet").partition(".")[0] in _OURS:
            raise
        return _complain(
            f"`discreet {args.command}` needs {error.name}: pip install 'discreet[{extra}]'"
        )
    except KeyboardInterrupt:
        return 130
    return code


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="discreet",
        description="Recommendations that learn from everyone and give away little about anyone.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"discreet {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, help_ in COMMANDS:
        description = f"{help_[0].upper()}{help_[1:]}."  # `capitalize` would write "http" and "api"
        subparser = subparsers.add_parser(name, help=help_, description=description)
        if name in arguments[:1]:
            module = import_module(f"discreet.commands.{name}")
            module.configure(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def _complain(message: str) -> int:
    print(f"discreet: {message}", file=sys.stderr)
    return USAGE_ERROR
