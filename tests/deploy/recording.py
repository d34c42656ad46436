"""What the dashboards' queries really find: a run of all families, kept as JSON for pictures."""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.deploy.prometheus import Prometheus, scraping
from tests.deploy.queries import DASHBOARDS, filled_in, panels
from tests.deploy.traffic import FAMILIES
from tests.deploy.traffic.stage import two_instances

WINDOW = "30s"
STEP_SECONDS = 3.0


def record(seconds: float) -> dict[str, Any]:
    """Send traffic for so long; return every dashboard's panels with what their queries found."""
    with tempfile.TemporaryDirectory(prefix="discreet-record-") as name:
        folder = Path(name)
        with (
            two_instances(folder, workers=2) as stage,
            scraping(folder / "prometheus", [stage.a, stage.b], seconds=3) as prometheus,
        ):
            for family in FAMILIES.values():
                family.prepare(stage)
            began = time.time()
            number = 0
            while time.time() < began + seconds:
                for family in FAMILIES.values():
                    family.step(stage, number)
                number += 1
                time.sleep(0.2)
            return {
                path.stem: _found(json.loads(path.read_text()), prometheus, began)
                for path in DASHBOARDS
            }


def _found(dashboard: dict[str, Any], prometheus: Prometheus, began: float) -> list[Any]:
    end = time.time()
    # Rates need a window's worth of samples before they mean anything.
    start = began + 10
    return [
        {
            "panel": panel,
            "series": [
                prometheus.ask_range(
                    filled_in(target["expr"], dashboard, window=WINDOW),
                    start=start, end=end, step=STEP_SECONDS,
                )
                for target in panel["targets"]
            ],
        }
        for panel in panels(dashboard)
    ]  # fmt: skip


def main() -> None:
    """Write the recording."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args()
    options.file.write_text(json.dumps(record(options.seconds)))


if __name__ == "__main__":
    main()
