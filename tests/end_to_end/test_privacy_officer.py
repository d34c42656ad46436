"""docs/privacy-officer.md: its commands, typed into a shell, prove what the page says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.servers import KEY, Server, serving

PAGE = Path(__file__).parent.parent.parent / "docs" / "privacy-officer.md"


def commands(*wanted: str) -> str:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return "\n".join(text for text in blocks if any(word in text for word in wanted))


def typed(server: Server, folder: Path, *wanted: str) -> str:
    """Type the page's commands with these words in them; return what was printed."""
    prelude = f"export URL={server.url} KEY={KEY}\n" + re.sub(
        r"^export .*\n", "", commands("get()")
    )
    python = f'python() {{ {sys.executable} "$@"; }}\n'
    script = "set -e\n" + prelude + python + commands(*wanted)
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs("curl")
def test_its_commands_prove_what_it_says(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.put("films")
        question = {"recommender": "films", "client": "ada", "context": [0.1, 0.2]}
        before = typed(server, tmp_path, "/statement |")
        assert server.client.post("/recommend", json=question).is_success
        card = typed(server, tmp_path, "/guarantee")
        assert '"not_covered"' in card
        assert '"closed_loop": true' in card
        after = typed(server, tmp_path, "/statement |")
        spent = [
            json.loads(text)["recommenders"][0]["answers"]["spent"]["epsilon"]
            for text in (before, after)
        ]
        assert spent == [0.0, 1.0], "one answer costs the card's price"
        erased = typed(server, tmp_path, "/erasures/verify")
        assert '"remains"' in erased
        assert '{"valid":true}' in erased
        found = json.loads((tmp_path / "verify.json").read_text())
        found["certificate"]["client"] = "bob"
        forged = server.client.post("/erasures/verify", json=found).json()
        assert forged == {"valid": False}
