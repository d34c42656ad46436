"""The claims in docs/reproductions.md, written from what the commands printed.

    discreet reproduce p-dap --data DATA --out out/p-dap     a full run
    python -m tests.claims out/*/*.json                      takes its claims into the page

docs/claims/NAME.json keeps what the last full run printed under "claims", docs/claims/runs.json how
many seeds it had and how many minutes of CPU it took. The page's overview is made from both.
"""

import json
import sys
from pathlib import Path

from discreet.research.reproduce.papers import PAPERS

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "reproductions.md"
KEPT = DOCS / "claims"
RUNS = KEPT / "runs.json"
OVERVIEW = "overview"
VERDICTS = ("holds", "fails", "not testable")
COLUMNS = {
    "paper_says": "the paper says",
    "where": "where",
    "published": "published",
    "ours": "ours",
    "verdict": "verdict",
    "why": "why",
}


def kept(name: str) -> list[dict[str, str]]:
    """Return the claims that the last full run of a paper printed."""
    claims: list[dict[str, str]] = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
    return claims


def rendered(name: str) -> str:
    """Return a paper's claims as Markdown."""
    lines = [" | ".join(COLUMNS.values()), " | ".join("---" for _ in COLUMNS)]
    lines += [" | ".join(claim[key].replace("|", "\\|") for key in COLUMNS) for claim in kept(name)]
    return "".join(f"| {line} |\n" for line in lines)


def runs() -> dict[str, dict[str, float]]:
    """Return the seeds and the minutes of CPU of every paper's last full run."""
    found: dict[str, dict[str, float]] = json.loads(RUNS.read_text(encoding="utf-8"))
    return found


def overview() -> str:
    """Return how many claims of each paper hold, as Markdown."""
    columns = ("paper", *VERDICTS, "seeds", "minutes of CPU")
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    for name in PAPERS:
        verdicts = [claim["verdict"] for claim in kept(name)]
        counts = [f"{verdicts.count(verdict)}" for verdict in VERDICTS]
        size = runs()[name]
        numbers = [*counts, f"{size['seeds']:g}", f"{size['cpu_minutes']:.0f}"]
        lines.append(" | ".join([f"[{name}](#{name})", *numbers]))
    return "".join(f"| {line} |\n" for line in lines)


def on_page(name: str) -> str:
    """Return what the page shows between the marks of this name."""
    text = PAGE.read_text(encoding="utf-8")
    return text.split(_begin(name))[1].split(_end(name))[0]


def take(path: Path) -> None:
    """Take the claims of one run's JSON file into the folder and the page."""
    found = json.loads(path.read_text(encoding="utf-8"))
    name = found["name"]
    if found["quick"]:
        sys.exit(f"{path}: a small run; the page shows full ones")
    if "cpu_minutes" not in found:
        sys.exit(f"{path}: written by an older version, without cpu_minutes: put them in")
    KEPT.mkdir(exist_ok=True)
    text = json.dumps(found["claims"], indent=1, ensure_ascii=False) + "\n"
    (KEPT / f"{name}.json").write_text(text, encoding="utf-8")
    sizes = runs() | {name: {key: found[key] for key in ("seeds", "cpu_minutes")}}
    RUNS.write_text(json.dumps(sizes, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    write(name, rendered(name))


def write(name: str, table: str) -> None:
    """Put a table between the marks of this name."""
    before, rest = PAGE.read_text(encoding="utf-8").split(_begin(name))
    after = rest.split(_end(name))[1]
    PAGE.write_text(before + _begin(name) + table + _end(name) + after, encoding="utf-8")


def _begin(name: str) -> str:
    return f"<!-- claims: {name} -->\n"


def _end(name: str) -> str:
    return f"<!-- end of claims: {name} -->\n"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        take(Path(argument))
    write(OVERVIEW, overview())
    print("claims of", ", ".join(PAPERS))
