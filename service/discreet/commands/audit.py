"""`discreet audit`: check every claim about privacy, and that planted faults are caught."""

import argparse

EXAMPLES = """\
examples:
  discreet audit --quick                    about two minutes on one core
  discreet audit --only "closed loop"       what has this text in its name
  discreet audit --json > audit.json

The exit code is 0 only if every claim holds and every planted fault was caught.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer samples and shorter enumerations: about two minutes; every claim and every "
        "planted fault is still examined",
    )
    parser.add_argument(
        "--only", metavar="NAME", help="examine only what has this text in its name"
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the audit; return its exit code."""
    # Imported here: the audit's own parts are heavy, and --help needs none of them.
    from discreet.audit.command import run_audit

    return run_audit(quick=args.quick, as_json=args.json, only=args.only)
