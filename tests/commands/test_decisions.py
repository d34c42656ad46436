"""`discreet decisions` prints what a recommender logged to the store."""

import asyncio
import json
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.families.questions import Ask, Recommendation
from discreet.preparation import opened
from discreet.settings import Settings
from tests.decisions.conftest import document
from tests.state.servers import valkey


async def _ask(url: str, visits: int) -> None:
    settings = Settings(store=url, init=True, store_timeout_seconds=30)
    async with opened(settings, carries=False) as services:
        await services.registry.put("films", document(log={"to": "stream"}))
        await services.registry.put("books", document(log={"to": "file"}))
        asks = [Ask("films", f"client {n}", (0.1, 0.2)) for n in range(visits)]
        answers = await services.recommend.recommend_many(asks)
        assert all(isinstance(one, Recommendation) for one in answers)


def test_every_line_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with valkey(tmp_path / "store") as store:
        asyncio.run(_ask(store.url, 1_200))
        assert main(["decisions", "--recommender", "films", "--store", store.url]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len({line["id"] for line in lines}) == len(lines) == 1_200
        for name, reason in (("books", "does not log"), ("records", "no recommender")):
            assert main(["decisions", "--recommender", name, "--store", store.url]) == 2
            assert reason in capsys.readouterr().err
