"""A progress bar on standard error for long computations."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from discreet.research.reproduce.papers import ProgressWatcher


@contextmanager
def progress_bar(name: str) -> Iterator[ProgressWatcher]:
    """Show a bar that the watcher advances; without a terminal, nothing is shown."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("[bold]{task.fields[name]}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=None, name=name)

        def watch(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield watch
