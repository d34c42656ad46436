"""The raw front under mutated requests: as h11 reads them, or refused.

Seeded, and a few seconds; `make fuzz` goes on for as long as one likes.
"""

import pytest

from tests.front import QUESTION, fronting, post, statuses
from tests.fuzzing import CORPUS, Findings, expected, fuzz, judge

pytestmark = pytest.mark.anyio

SEEDS = range(1_200)


async def test_mutated_requests_are_read_as_h11_reads_them_or_refused() -> None:
    findings = await fuzz(iter(SEEDS))
    assert findings.faults == []
    assert findings.requests + findings.stricter["reset after an announced end"] == len(SEEDS)
    assert findings.agreed > 0.8 * len(SEEDS)


async def test_the_corpus_is_answered_alike_without_mutation() -> None:
    async with fronting() as front:
        for content in CORPUS:
            ours = [one for one in statuses(await front.talk(content, finished=True)) if one != 100]
            findings = Findings()
            judge(content, ours, await expected(front, content), findings)
            assert findings.faults == [], content
            assert all(status < 500 for status in ours)


def test_a_looser_front_would_be_found() -> None:
    """Planted: a front that answers what h11 refuses, reads a second request, or fails."""
    for ours, theirs in (([200], [400]), ([200, 200], [200]), ([500], [500]), ([404], [422])):
        findings = Findings()
        judge(post(), ours, theirs, findings)
        assert len(findings.faults) == 1, (ours, theirs)


async def test_what_fuzzing_found() -> None:
    async with fronting() as front:
        old = b"POST /recommend\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
        assert statuses(await front.talk(old, finished=True)) == [400], "HTTP/0.9 is not spoken"
        # The key is asked for before the body is read; then nothing else may be answered.
        unknown = post(QUESTION, path="/recommend?x").replace(b"Bearer ", b"Bearer x")
        answered = statuses(await front.talk(unknown[:-5], finished=True))
        assert len(answered) == 1, "one request, one answer"
        assert answered[0] in (400, 401)
