"""`discreet audit`: check every claim about privacy, and that planted faults are caught."""

import argparse
from itertools import chain

EXAMPLES = """\
examples:
  discreet audit --quick            within a minute
  discreet audit --json > audit.json

The exit code is 0 only if every claim holds and every planted fault was caught.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--quick", action="store_true", help="fewer samples: within a minute")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the audit; return its exit code."""
    # Imported here: the audit's own parts are heavy, and --help needs none of them.
    from discreet.audit.families.p_dap import learner_checks, learner_faults
    from discreet.audit.families.fclub import cluster_checks, cluster_faults
    from discreet.audit.families.p_dap_many import many_checks
    from discreet.audit.families.p_dap_many_planted import many_faults
    from discreet.audit.families.mirror_descent import mirror_checks, mirror_faults
    from discreet.audit.families.collaborative import profile_checks, profile_faults
    from discreet.audit.families.p_rec import voter_checks, voter_faults
    from discreet.audit.mechanisms.command import run as audit

    return audit(
        quick=args.quick,
        as_json=args.json,
        further=chain(
            learner_checks(),
            many_checks(),
            cluster_checks(),
            mirror_checks(),
            voter_checks(),
            profile_checks(),
        ),
        further_faults=chain(
            learner_faults(),
            many_faults(),
            cluster_faults(),
            mirror_faults(),
            voter_faults(),
            profile_faults(),
        ),
    )
