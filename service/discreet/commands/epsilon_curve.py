"""`discreet simulate --config`: your own recommenders over a range of epsilons."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from discreet import configuration
from discreet.commands.progress import progress_bar
from discreet.commands.reproduce import make_folder, wide_console
from discreet.errors import InvalidArgument
from discreet.research.reproduce.pictures import HOW_TO_DRAW, can_draw, draw
from discreet.research.reproduce.tables import Figure, Line, Panel
from discreet.research.reproduce.trials import run_all
from discreet.research.simulate.choosing import (
    EpsilonTrial,
    FeedbackDial,
    VectorDocument,
    feedback_epsilon,
    learns_from_vectors,
    result_row,
    world_for,
)
from discreet.research.worlds.logged import read_log

EPSILONS = "0.1,0.5,1,2,4,8"
ROUNDS = 10_000
SEEDS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `--config`."""
    own = parser.add_argument_group(
        "with --config (the first, --rounds and --processes with --suite too)"
    )
    own.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help="a logged stream (CSV) instead of a synthetic one; with --suite, a folder with "
        "MovieLens or Open Bandit",
    )
    own.add_argument(
        "--epsilons",
        default=EPSILONS,
        metavar="LIST",
        help="epsilons of answers to try (default: %(default)s)",
    )
    own.add_argument(
        "--feedback-epsilons",
        metavar="LIST",
        help="epsilons of feedback to try, or exact (default: what the file says)",
    )
    own.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help=f"requests in a run ({ROUNDS:,}; with --data, as many as there are rows)",
    )
    own.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="runs (%(default)d)")
    own.add_argument(
        "--processes", type=int, metavar="N", help="runs at a time (default: one per core)"
    )
    own.add_argument(
        "--out", type=Path, metavar="DIR", help="for pictures and JSON (default: out/simulate)"
    )


def run(args: argparse.Namespace) -> int:
    """Run every epsilon on every seed, and show the curve."""
    epsilons = _epsilons("--epsilons", args.epsilons)
    dials = _dials(args.feedback_epsilons)
    for option, value in (("seeds", args.seeds), ("rounds", args.rounds)):
        if value is not None and value < 1:
            raise InvalidArgument(f"--{option}", "must be at least 1")
    recommenders = _recommenders(args)
    folder = make_folder(args.out or Path("out", "simulate"))
    found = []
    for name, document in recommenders.items():
        found.append(_curve(args, name, document, epsilons, dials))
    report = {"recommenders": found}
    (folder / "simulate.json").write_text(json.dumps(report, indent=1) + "\n")
    files = [folder / "simulate.json"]
    if can_draw():
        files += draw([_figure(one) for one in found], folder)
    else:
        print(f"discreet: {HOW_TO_DRAW}", file=sys.stderr)
    if args.json:
        print(json.dumps(report))
    else:
        for one in found:
            _print(one)
        written = ", ".join(map(str, files))
        Console().print(f"written: {written}", highlight=False, soft_wrap=True)
    return 0


def _epsilons(option: str, text: str) -> list[float]:
    try:
        epsilons = sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise InvalidArgument(option, "must be numbers with commas between") from None
    if not epsilons or not 0 < epsilons[0] <= epsilons[-1] <= 50:
        raise InvalidArgument(option, "each must be greater than 0 and at most 50")
    return epsilons


def _dials(text: str | None) -> list[FeedbackDial]:
    if text is None:
        return [None]
    parts = [part.strip() for part in text.split(",")]
    numbers = ",".join(part for part in parts if part != "exact")
    exact: list[FeedbackDial] = ["exact"] if "exact" in parts else []
    return exact + (list(_epsilons("--feedback-epsilons", numbers)) if numbers else [])


def _recommenders(args: argparse.Namespace) -> Mapping[str, VectorDocument]:
    described = configuration.read(args.config).recommenders
    found = {
        name: document for name, document in described.items() if learns_from_vectors(document)
    }
    if not found:
        raise InvalidArgument(
            "--config", f"{args.config} has no recommender that learns from a context"
        )
    if args.recommender is None:
        if args.data is not None and len(found) > 1:
            names = ", ".join(sorted(found))
            raise InvalidArgument("--recommender", f"say which one the log is of: {names}")
        return found
    if args.recommender not in found:
        names = ", ".join(sorted(found))
        raise InvalidArgument(
            "--recommender", f"{args.config} has no such recommender; it has {names}"
        )
    return {args.recommender: found[args.recommender]}


def _curve(
    args: argparse.Namespace,
    name: str,
    document: VectorDocument,
    epsilons: Sequence[float],
    dials: Sequence[FeedbackDial],
) -> dict[str, Any]:
    world_for(document, 0)  # a recommender without items is an error now, not in an hour
    rounds = args.rounds or ROUNDS
    if args.data is not None:
        items = tuple(item.id for item in document.items if not item.hidden)
        log = read_log(args.data, context=document.context, items=items, most=args.rounds)
        rounds = len(log)
    wanted: list[tuple[float | None, FeedbackDial]] = [(None, None)]
    wanted += [(epsilon, dial) for dial in dials for epsilon in epsilons]
    trials = [
        EpsilonTrial(document, epsilon, rounds, seed, args.data, args.rate, dial)
        for epsilon, dial in wanted
        for seed in range(args.seeds)
    ]
    with progress_bar(name) as watch:
        runs = run_all(trials, watch=watch, processes=args.processes)
    by_setting = [runs[at : at + args.seeds] for at in range(0, len(runs), args.seeds)]
    return {
        "recommender": name,
        "stream": "synthetic" if args.data is None else "logged",
        "evaluation": "true means" if args.data is None else "rejection",
        "rounds": rounds,
        "seeds": args.seeds,
        "feedback_epsilon": feedback_epsilon(document),
        "results": [
            result_row(
                document=document,
                epsilon=epsilon,
                feedback=dial,
                runs=many,
                unprotected=by_setting[0],
            )
            for (epsilon, dial), many in zip(wanted, by_setting, strict=True)
        ],
    }


def _figure(found: Mapping[str, Any]) -> Figure:
    rows = [row for row in found["results"] if row["epsilon"] and row["reward_mean"] is not None]
    free = found["results"][0]["reward_mean"]
    logged = found["stream"] == "logged"
    rewards, regrets = [], []
    for dial in dict.fromkeys(row["feedback_epsilon"] for row in rows):
        same = [row for row in rows if row["feedback_epsilon"] == dial]
        x = [row["epsilon"] for row in same]
        label = f"feedback {_dial_shown(dial)}"
        means = [row["reward_mean"] for row in same]
        spread = [(row["reward_high"] or row["reward_mean"]) - row["reward_mean"] for row in same]
        rewards.append(Line(label, x, means, spread))
        deviations = None if logged else [row["regret_std"] for row in same]
        regrets.append(Line(label, x, [row["regret_mean"] for row in same], deviations))
    if free is not None and rewards:
        x = list(rewards[0].x)
        rewards.append(Line("without protection", x, [free] * len(x)))
    against = "without protection" if logged else "the best item"
    first = "reward of an answer, with 95% interval"
    second = f"regret of an answer, against {against}"
    panels = [
        Panel(first, "epsilon of answers", "mean reward", rewards, log_x=True),
        Panel(second, "epsilon of answers", "regret", regrets, log_x=True),
    ]
    return Figure(
        f"epsilon-{found['recommender']}",
        f"{found['recommender']}: reward and regret by epsilon",
        panels,
    )


def _print(found: Mapping[str, Any]) -> None:
    title = f"{found['recommender']}: {found['rounds']:,} {found['stream']} arrivals"
    console = wide_console()
    console.print(title, style="bold", highlight=False, soft_wrap=True)
    table = Table(box=None)
    for heading in (
        "answers",
        "feedback",
        "reward",
        "95% interval",
        "regret",
        "of optimal",
        "answers counted",
        "requests per budget",
    ):
        table.add_column(heading, justify="right")
    for row in found["results"]:
        table.add_row(
            "none" if row["epsilon"] is None else f"{row['epsilon']:g}",
            _dial_shown(row["feedback_epsilon"]),
            _shown(row["reward_mean"]),
            f"{_shown(row['reward_low'])} – {_shown(row['reward_high'])}",
            _shown(row["regret_mean"]),
            "–" if row["share_of_optimal"] is None else f"{row['share_of_optimal']:.1%}",
            f"{row['answers_counted']:,}",
            "–" if row["requests_per_budget"] is None else f"{row['requests_per_budget']:,}",
        )
    console.print(table)
    if found["stream"] == "logged":
        console.print(
            "By rejection: only rows where the recommender answered what was logged count.\n"
            "Regret is against the same recommender without protection.",
            highlight=False,
        )


def _dial_shown(epsilon: float | None) -> str:
    return "exact" if epsilon is None else f"{epsilon:g}"


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
