"""A run's figures, its history, and a picture of answers and faults over time."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import checker
from tests.chaos.history import History


def write_report(history: History, violations: Sequence[str], folder: Path, *, seed: int) -> None:
    """Write report.md, history.jsonl and picture.png."""
    folder.mkdir(parents=True, exist_ok=True)
    history.write(folder / "history.jsonl")
    statuses = Counter((one.kind, one.status) for one in history)
    faults = Counter(name for name, _, _ in history.faults)
    lines = [f"# Chaos, seed {seed}", "", "| call | status | how many |", "|---|---|---|"]
    lines += [
        f"| {kind} | {status or 'none'} | {n} |" for (kind, status), n in sorted(statuses.items())
    ]
    lines += ["", "| fault | how often |", "|---|---|"]
    lines += [f"| {name} | {count} |" for name, count in sorted(faults.items())]
    promises = str(checker.__doc__).partition("\n\n")[2]
    lines += ["", "Checked from the history and the ledgers at its end:", "", "```"]
    lines += [promises.rstrip(), "```", ""]
    lines += [f"Violations: {len(violations)}", *(f"- {one}" for one in violations), ""]
    (folder / "report.md").write_text("\n".join(lines))
    _draw(history, folder / "picture.png")


def _draw(history: History, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    last = int(max((one.ended for one in history), default=0.0)) + 1
    answered, refused = [0] * (last + 1), [0] * (last + 1)
    for one in history:
        (answered if one.status == 200 else refused)[int(one.ended)] += 1
    names = sorted({name for name, _, _ in history.faults}, reverse=True)
    figure, (calls, faults) = pyplot.subplots(
        2, figsize=(12, 6), sharex=True, height_ratios=(3, 2), layout="constrained"
    )
    calls.step(range(last + 1), answered, where="post", label="answered")
    calls.step(range(last + 1), refused, where="post", label="refused or lost")
    calls.set_ylabel("calls a second")
    calls.legend(loc="upper right", fontsize="small", ncols=2)
    # A row for each kind of fault: where they lie side by side they can be told apart.
    for row, name in enumerate(names):
        spans = [
            (began, max(ended - began, 0.2)) for n, began, ended in history.faults if n == name
        ]
        faults.broken_barh(spans, (row - 0.4, 0.8), facecolors=f"C{2 + row % 8}")
    faults.set_yticks(range(len(names)), names)
    faults.set_xlabel("seconds")
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
