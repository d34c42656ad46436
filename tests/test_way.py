"""CONTRIBUTING.md says which files a request passes, and they are few."""

import re

from tests import way


def test_the_page_says_the_way_as_it_is_traced() -> None:
    assert way.on_page() == way.rendered()


def test_a_request_passes_few_files_before_the_store() -> None:
    counts = [int(count) for count in re.findall(r"passes (\d+) files", way.on_page())]
    assert len(counts) == 2
    assert max(counts) <= 24
