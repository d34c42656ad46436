"""Write the dashboards, and what the chart carries of them and of the rules."""

import shutil
from pathlib import Path

from deploy.grafana import learning, overview, privacy, store

HERE = Path(__file__).resolve().parent
CHART = HERE.parent / "helm" / "discreet"
RULES = HERE.parent / "prometheus" / "rules.yaml"
BOARDS = (overview.BOARD, privacy.BOARD, learning.BOARD, store.BOARD)


def files(*, beside: Path = HERE, chart: Path = CHART) -> dict[Path, str]:
    """Return what is to be written, by path. A chart can only show files of its own."""
    written = {}
    for board in BOARDS:
        text = board.json()
        written[beside / f"{board.name}.json"] = text
        written[chart / "dashboards" / f"{board.name}.json"] = text
    written[chart / "rules" / "discreet.yaml"] = RULES.read_text()
    return written


def main() -> None:
    """Write everything anew; dashboards that are no longer there are removed."""
    for folder in (HERE, CHART / "dashboards"):
        for stale in folder.glob("*.json"):
            stale.unlink()
    shutil.rmtree(CHART / "rules", ignore_errors=True)
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
