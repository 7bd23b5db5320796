"""Options objects of commands: what Typer sees of them, and what the command gets."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from tacit.cli.expand import expand
from typer.testing import CliRunner


@dataclass(frozen=True)
class Size:
    rows: Annotated[int, typer.Option(min=1, help="Rows.")]
    cols: Annotated[int, typer.Option("--columns", min=1)] = 3


@dataclass(frozen=True)
class Narrow(Size):
    cols: int = 1


def run(family, *arguments):
    """What a command with options of a family gets."""
    given = []
    app = typer.Typer()

    def command(size: family, name: Annotated[str, typer.Argument()], quick: bool = False) -> None:
        given.append((size, name, quick))

    app.command()(expand(command))
    done = CliRunner().invoke(app, list(arguments))
    return done, given


def test_fields_are_options_and_arrive_as_one_object():
    done, given = run(Size, "one", "--rows", "2", "--columns", "5", "--quick")
    assert done.exit_code == 0
    assert given == [(Size(2, 5), "one", True)]


def test_defaults_are_those_of_the_class_that_is_named():
    assert run(Size, "one", "--rows", "2")[1] == [(Size(2, 3), "one", False)]
    assert run(Narrow, "one", "--rows", "2")[1] == [(Narrow(2, 1), "one", False)]


def test_a_field_without_default_must_be_given_and_bounds_hold():
    for arguments in (("one",), ("one", "--rows", "0")):
        done, given = run(Size, *arguments)
        assert (done.exit_code, given) == (2, [])


def test_a_name_that_is_there_twice_is_refused():
    def command(size: Size, rows: int) -> None:
        """Take rows twice."""

    with pytest.raises(ValueError, match="duplicate parameter name"):
        expand(command)
