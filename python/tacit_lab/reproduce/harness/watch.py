"""A run as it goes, on standard error: a bar on a terminal, and a line for each table that is done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tacit_lab.reproduce.harness.runner import Result
from tacit_lab.reproduce.harness.wording import lasting, status


@contextmanager
def watch(names: list[str]) -> Iterator[Callable[[Result], None]]:
    """Show progress; the value is called with each result, in the order of `names`."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    errors = Console(stderr=True)
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(names[0] if names else "", total=len(names))

        def done(result: Result) -> None:
            place = names.index(result.entry["table"]) + 1
            bar.console.print(f"{place}/{len(names)} {said(result)}", highlight=False, markup=False, soft_wrap=True)
            bar.update(task, completed=place, description=names[place] if place < len(names) else "")

        yield done


def said(result: Result) -> str:
    """A result in a line."""
    name = result.entry["table"]
    if result.kept:
        return f"{name}: kept, made with this commit before (--again makes it anew)"
    if result.entry["status"] == "done":
        return f"{name}: done in {lasting(result.entry['seconds'])}"
    return f"{name}: {status(result.entry)}"
