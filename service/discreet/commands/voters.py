"""`discreet voters`: choose the parameters of p-REC, without running anything."""

import argparse
import json
import math
from typing import Any

from rich.console import Console
from rich.table import Table

from discreet.families.budgets import BudgetPolicy
from discreet.families.p_rec.run_parameters import (
    RunParameters,
    VotingParameters,
    parameters_for,
    parameters_within,
)

EXAMPLES = """\
what the parameters mean:
  --objects    m, the most objects that a round offers
  --shown      k, the most objects that an answer shows; each is paid for
  --rounds     T, the horizon: how many rounds a client's run has
  --voters     n, the most voters there will ever be; more are refused
  --radius     R, how many objects that the client dislikes a like-minded voter may vote for
  --diversity  D, in how many rounds the client likes more than one object
  --peers      P, how many like-minded voters the client must have for votes to be used
  --epsilon    what one client's whole run may reveal about a voter; in place of --peers
  --run-delta  the probability with which a run may reveal more than that

examples:
  discreet voters --objects 10 --rounds 1000 --voters 100000 --epsilon 1
  discreet voters --objects 10 --shown 3 --rounds 1000 --voters 100000 --epsilon 1
  discreet voters --objects 10 --rounds 1000 --voters 100000 --peers 5000
  discreet voters --objects 5 --rounds 500 --voters 1000000 --radius 2 --peers 20000 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--objects", type=int, required=True, metavar="M")
    parser.add_argument("--rounds", type=int, required=True, metavar="T")
    parser.add_argument("--voters", type=int, required=True, metavar="N")
    parser.add_argument("--shown", type=int, default=1, metavar="K", help="default: 1")
    parser.add_argument("--radius", type=int, default=0, metavar="R", help="default: 0")
    parser.add_argument("--diversity", type=int, default=0, metavar="D", help="default: 0")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--peers", type=int, metavar="P", help="which epsilon do they give?")
    which.add_argument("--epsilon", type=float, metavar="E", help="which peers are needed?")
    parser.add_argument("--run-delta", type=float, default=1e-9, help="default: 1e-9")
    parser.add_argument(
        "--budget",
        type=float,
        nargs=2,
        default=(10.0, 1e-6),
        metavar=("EPSILON", "DELTA"),
        help="how many runs does it pay for? (default: 10 1e-6)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print what the parameters promise."""
    voting = VotingParameters(
        objects=args.objects,
        rounds=args.rounds,
        radius=args.radius,
        diversity=args.diversity,
        shown=args.shown,
    )
    people = {"voters": args.voters, "delta": args.run_delta}
    if args.peers is not None:
        chosen = parameters_for(voting=voting, peers=args.peers, **people)
    else:
        chosen = parameters_within(voting=voting, epsilon=args.epsilon, **people)
    found = describe_run(chosen, *args.budget)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        _show(found)
    return 0


def describe_run(run: RunParameters, epsilon: float, delta: float) -> dict[str, Any]:
    """Return everything that follows from the parameters, and how many runs a budget pays for."""
    voting = run.voting
    return {
        "objects": voting.objects,
        "shown": voting.shown,
        "rounds": voting.rounds,
        "voters": run.voters,
        "radius": voting.radius,
        "diversity": voting.diversity,
        "peers": run.peers,
        "epsilon": run.event.epsilon,
        "rho": run.event.rho,
        "delta": run.delta,
        "loss_bound": run.loss_bound,
        "loss_at_random": voting.rounds * (1 - 1 / voting.objects),
        "published_epsilon": voting.published_epsilon(run.peers),
        "drawn_at_random": voting.uniform_share,
        "survivors": run.survivors + 1,
        "budget": {"epsilon": epsilon, "delta": delta, "runs": runs_within(run, epsilon, delta)},
    }


def runs_within(run: RunParameters, epsilon: float, delta: float) -> int:
    """Return how many runs a budget pays for: by the sum of epsilons or of rhos, as served."""
    budget = BudgetPolicy(epsilon=epsilon, delta=delta, reserved_delta=delta / 2)
    limit, charge = budget.limit, budget.charge((run.event,))
    by_epsilon = limit.nano_epsilon // charge.nano_epsilon
    by_rho = limit.nano_rho // charge.nano_rho
    return min(max(by_epsilon, by_rho), limit.pico_delta // charge.pico_delta)


def _show(found: dict[str, Any]) -> None:
    budget = found["budget"]
    rows = [
        (
            "objects in a round (m)",
            f"{found['objects']}",
            f"at most; up to {found['shown']} of them shown to the client",
        ),
        ("horizon (T)", f"{found['rounds']:,}", "rounds in a client's run"),
        ("most voters (n)", f"{found['voters']:,}", "further ones are refused"),
        (
            "radius (R)",
            f"{found['radius']}",
            "how often a like-minded voter may vote for what the client dislikes",
        ),
        (
            "diversity (D)",
            f"{found['diversity']}",
            "in how many rounds the client may like more than one object",
        ),
        (
            "peers (P)",
            f"{found['peers']:,}",
            "like-minded voters that a client must have; with fewer, a test ends the use of votes",
        ),
        (
            "epsilon of a run",
            f"{found['epsilon']:.4g}",
            f"with δ {found['delta']:g}; rho {found['rho']:.4g}. "
            f"The paper's bound: {found['published_epsilon']:.4g}, if the peers are there",
        ),
        (
            "objects disliked",
            f"{math.ceil(found['loss_bound']):,} at most",
            f"expected, of {found['rounds']:,}, if everybody votes; "
            f"at random up to {math.ceil(found['loss_at_random']):,}",
        ),
        ("answers at random", f"{found['drawn_at_random']:.2%}", "mixed in for privacy"),
        (
            f"budget {budget['epsilon']:g}, {budget['delta']:g}",
            f"{budget['runs']:,} runs",
            "of all clients together; then answers are random",
        ),
    ]
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False)
    (console if console.is_terminal else Console(highlight=False, width=110)).print(table)
    if found["loss_bound"] >= found["loss_at_random"]:
        console.print(
            "The bound is no better than random answers here. More peers, fewer objects, a smaller "
            "radius or a longer horizon would improve it."
        )
