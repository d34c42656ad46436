"""`discreet items`: a catalogue from a file into a running server, and back."""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from discreet.commands.item_files import ItemLine, is_csv, read_items, write_csv, write_lines
from discreet.errors import InvalidArgument
from discreet_client import Client, ProblemError, Retries, Unreachable

EXAMPLES = """\
examples:
  discreet items import films.jsonl --recommender films
  discreet items import films.csv --recommender films --url https://recommend.example \\
      --key-file admin.key
  discreet items export films.jsonl --recommender films

A file is JSON lines, an item or its id a line; or CSV with a header, if its name ends in .csv: id,
title, hidden, categories (a|b) and features (JSON), and every other column is an attribute.

Items that are there already take what the file says, and no item is removed. Lines that cannot be
used are named, and the others are taken. An import can be repeated, and changes nothing then; one
that broke off says the line from which to go on (--from-line).
"""

_PAGE_BYTES = 4_000_000
_PAGE_LINES = 25_000
_PATIENCE = Retries(tries=8, longest=15.0, total=300.0)
_TIMEOUT = 120.0
_FAILED = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    importing = actions.add_parser("import", help="add the items of a file, or change them")
    exporting = actions.add_parser("export", help="write all items to a file")
    importing.add_argument("file", type=Path, metavar="FILE", help=".jsonl or .csv")
    importing.add_argument(
        "--from-line", type=int, default=1, metavar="N", help="leave out the lines before"
    )
    exporting.add_argument(
        "file", type=Path, metavar="FILE", nargs="?", help=".jsonl or .csv (default: to the screen)"
    )
    for each in (importing, exporting):
        each.add_argument("--recommender", required=True, metavar="NAME")
        each.add_argument("--url", default="http://127.0.0.1:8000", help="(default: %(default)s)")
        each.add_argument(
            "--key-file",
            type=Path,
            metavar="FILE",
            help="holds a key with the scope admin (default: DISCREET_API_KEY in the environment)",
        )


def run(args: argparse.Namespace) -> int:
    """Import or export; return the exit code."""
    with Client(args.url, _key(args.key_file), timeout=_TIMEOUT, retries=_PATIENCE) as server:
        path = f"/recommenders/{quote(args.recommender, safe='')}/items"
        if args.action == "import":
            return _import(server, path, args.file, args.from_line)
        return _export(server, path, args.file)


def _key(file: Path | None) -> str:
    if file is None:
        key = os.environ.get("DISCREET_API_KEY", "")
    else:
        try:
            key = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise InvalidArgument("--key-file", "cannot be read") from None
    if not key:
        raise InvalidArgument("--key-file", "is needed: a file that holds a key with scope admin")
    return key


def _import(server: Client, path: str, file: Path, first: int) -> int:
    began = time.monotonic()
    totals = dict.fromkeys(("added", "changed", "unchanged", "refused"), 0)
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=32),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(file.name, total=file.stat().st_size if file.is_file() else None)
        for page in _pages(line for line in read_items(file) if line.number >= first):
            try:
                found = server.call(
                    "POST", f"{path}/import", b"\n".join(line.content for line in page)
                )
            except (ProblemError, Unreachable) as error:
                raise InvalidArgument(
                    "import", f"{error}; go on with --from-line {page[0].number}"
                ) from None
            for name in totals:
                totals[name] += found[name]
            for wrong in found["errors"]:
                number = page[wrong["line"] - 1].number
                print(f"line {number}: {wrong['field']}: {wrong['message']}", file=sys.stderr)
            unnamed = found["refused"] - len(found["errors"])
            if unnamed:
                print(f"and {unnamed:,} lines more before line {page[-1].number}", file=sys.stderr)
            bar.update(task, advance=sum(len(line.content) + 1 for line in page))
    seconds = time.monotonic() - began
    print(
        f"{totals['added']:,} added, {totals['changed']:,} changed, {totals['unchanged']:,} "
        f"unchanged, {totals['refused']:,} refused, in {seconds:.1f} s"
    )
    return _FAILED if totals["refused"] else 0


def _pages(lines: Iterable[ItemLine]) -> Iterator[list[ItemLine]]:
    page: list[ItemLine] = []
    size = 0
    for line in lines:
        if page and (size + len(line.content) > _PAGE_BYTES or len(page) == _PAGE_LINES):
            yield page
            page, size = [], 0
        page.append(line)
        size += len(line.content) + 1
    if page:
        yield page


def _export(server: Client, path: str, file: Path | None) -> int:
    items: list[dict[str, Any]] = []
    after = -1
    while True:
        try:
            found = server.call("GET", f"{path}?after={after}")
        except (ProblemError, Unreachable) as error:
            raise InvalidArgument("export", str(error)) from None
        for item in found["items"]:
            if not item["hidden"]:
                del item["hidden"]
            items.append(item)
        if "next" not in found:
            break
        after = found["next"]
    text = write_csv(items) if file is not None and is_csv(file) else write_lines(items)
    if file is None:
        sys.stdout.write(text)
        return 0
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(str(file), f"cannot be written: {error.strerror}") from None
    print(f"{len(items):,} items in {file}")
    return 0
