"""Options of a command that stand in a file in place of the command line."""

from collections.abc import Mapping
from dataclasses import Field, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer

from tacit.errors import MisuseError
from tacit.session.place import Place

Options = TypeVar("Options")


def filled(options: Options, given: Mapping[str, Any], places: Mapping[str, str], folder: Path) -> Options:
    """The options with those of a file in the place of each that the command line leaves as it is by default.

    `given` has values by the names of the command line, `places` says where each stands in the file. Paths are those
    from `folder`. Raises `MisuseError` for names and values that the command does not have.
    """
    hints = get_type_hints(type(options), include_extras=True)
    known = {named(field.name, hints[field.name]): field for field in fields(options)}  # type: ignore[arg-type]
    chosen: dict[str, Any] = {}
    for name, value in given.items():
        field: Field[Any] | None = known.get(name)
        if field is None:
            raise MisuseError(f"{places[name]}: there is no option `{name}`; see `tacit serve --help`")
        try:
            fit = fitting(value, hints[field.name], folder)
        except ValueError as error:
            raise MisuseError(f"{places[name]}: `{name}` {error}") from error
        if getattr(options, field.name) == field.default:
            chosen[field.name] = fit
    return replace(options, **chosen)  # type: ignore[type-var]


def named(field: str, hint: Any) -> str:
    """What a field is called on the command line: as its option says, or as itself."""
    option = get_args(hint)[1] if get_origin(hint) is Annotated else None
    # In an annotation the first name stands where the default does elsewhere.
    names = [getattr(option, "default", None), *(getattr(option, "param_decls", None) or ())]
    long = [name for name in names if isinstance(name, str) and name.startswith("--")]
    return long[0].removeprefix("--").split("/")[0] if long else field.replace("_", "-")


def fitting(value: Any, hint: Any, folder: Path) -> Any:
    """The value as the option takes it; raises `ValueError` for one that it does not take."""
    kinds, bounds = [hint], None
    if get_origin(hint) is Annotated:
        kinds, bounds = [get_args(hint)[0]], get_args(hint)[1]
    if get_origin(kinds[0]) is UnionType:
        kinds = [kind for kind in get_args(kinds[0]) if kind is not NoneType]
    kind = kinds[0]
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ValueError(f"is one of {', '.join(get_args(kind))}, not {value!r}")
        return value
    if get_origin(kind) is Annotated:
        return fitting(value, kind, folder)
    if kind is Path or kind is Place:
        if not isinstance(value, str):
            raise ValueError(f"is the path of a file, not {value!r}")
        return folder / value if kind is Path else Place.within(folder, value)
    if isinstance(value, str) and getattr(bounds, "parser", None) is not None:
        return parsed(value, bounds)
    wanted = (int, float) if kind is float else (kind,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
        names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
        raise ValueError(f"is {names.get(kind, kind)}, not {value!r}")
    low, high = getattr(bounds, "min", None), getattr(bounds, "max", None)
    if (low is not None and value < low) or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"{low} to {high}"
        raise ValueError(f"is {limits}, not {value!r}")
    return value


def parsed(text: str, option: Any) -> Any:
    """The value that an option with a parser of its own reads; raises `ValueError` with the parser's words."""
    try:
        return option.parser(text)
    except typer.BadParameter as error:
        raise ValueError(error.message) from error
