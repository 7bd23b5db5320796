"""Commands that take options objects.

Typer reads a function's parameters. `expand` shows it the fields of a dataclass in the place of a parameter of that
type, so that the options of a command family stand in one class and reach the code as one object.
"""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def expand(function: Callable[..., None]) -> Callable[..., None]:
    """Give the command a signature in which parameters of a dataclass type are replaced by one option per field.

    The name of a field is that of its option. Raises `ValueError` when two parameters have the same name.
    """
    hints = get_type_hints(function, include_extras=True)
    shown: list[Parameter] = []
    families: dict[str, type[Any]] = {}
    for name, parameter in signature(function).parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and is_dataclass(hint):
            families[name] = hint
            shown += options_of(hint)
        else:
            shown.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hint))

    def command(**given: Any) -> None:
        objects = {
            name: family(**{field.name: given.pop(field.name) for field in fields(family)})
            for name, family in families.items()
        }
        function(**given, **objects)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    return command


def options_of(family: type[Any]) -> Iterator[Parameter]:
    """A parameter for each field of a dataclass."""
    hints = get_type_hints(family, include_extras=True)
    for field in fields(family):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
