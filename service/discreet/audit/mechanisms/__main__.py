"""`python -m discreet.audit.mechanisms`: the audit without the rest of the service."""

import argparse
import sys

from discreet.audit.mechanisms.command import run


def main() -> int:
    """Parse the two options and run."""
    parser = argparse.ArgumentParser(
        prog="python -m discreet.audit.mechanisms",
        description="Examine every privacy claim; exit 0 only if all hold.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples: within a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    return run(quick=options.quick, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
