"""What the compiler needs to know of a decoder's prompts: what stands before and after them, from a chat template."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.data.decoding import MOST_BEGINNING, Decoding
from tacit.errors import MisuseError
from tacit.importers.directory import read_json
from tacit.importers.huggingface import is_directory_of_model, pooling_of

if TYPE_CHECKING:
    from tacit.compiler.reading import Reading

START, END = "<|im_start|>", "<|im_end|>"
"""Marks of the template that is called ChatML."""
SYSTEM = re.compile(re.escape(START) + r"system\s*(?:\\n|\n)(.*?)" + re.escape(END), re.DOTALL)
SAID = "say what stands before and after each prompt (--prefix, --suffix)"


@dataclass(frozen=True)
class Prompting:
    """The tokens of the beginning, and what clients know of prompts."""

    tokens: tuple[int, ...]
    decoding: Decoding


def decodes(source: Path) -> bool:
    """Whether `source` is the directory of a decoder."""
    return is_directory_of_model(source) and pooling_of(source) == "next"


def prompting(source: Path, reading: "Reading") -> Prompting:
    """What stands around prompts: what `reading` says, or else what the chat template of the directory does.

    Without both, prompts are texts that are continued, and the beginning is the token that texts begin with.
    """
    tokenizer = tokenizer_of(reading.tokenizer or source / "tokenizer.json")
    config = read_json(source / "config.json")
    before, after = reading.prefix, reading.suffix
    template = template_of(source)
    if template is not None and (before is None or after is None):
        told = chatted(template)
        before = told[0] if before is None else before
        after = told[1] if after is None else after
    tokens = tuple(tokenizer.encode(before or "", add_special_tokens=False).ids)
    first = config.get("bos_token_id")
    if not tokens and isinstance(first, int):
        tokens = (first,)
    if len(tokens) > MOST_BEGINNING:
        raise MisuseError(f"the beginning of prompts has {len(tokens)} tokens, more than {MOST_BEGINNING}")
    stops = {config.get("eos_token_id"), tokenizer.token_to_id(END) if END in (after or "") else None}
    known = tuple(sorted(stop for stop in flat(stops) if isinstance(stop, int)))
    return Prompting(tokens, Decoding(len(tokens), before or "", after or "", known))


def flat(values: "set[Any]") -> list[Any]:
    """Values, and what is in those that are lists."""
    return [one for value in values for one in (value if isinstance(value, Sequence) else [value])]


def tokenizer_of(path: Path) -> Any:
    """The tokenizer in a file."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MisuseError("text needs the package tokenizers; install tacit[text]") from None
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain exceptions
        raise MisuseError(f"{path} is no readable tokenizer: {str(error)[:200]}") from error


def template_of(source: Path) -> str | None:
    """The chat template of a directory, if it has one."""
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        path = source / name
        if not path.is_file():
            continue
        if path.suffix == ".jinja":
            return path.read_text(encoding="utf-8")
        told = read_json(path).get("chat_template")
        if isinstance(told, str):
            return told
    return None


def chatted(template: str) -> tuple[str, str]:
    """What a template writes before and after the first thing that a user says; raises for one that is unknown."""
    if START not in template or END not in template:
        raise MisuseError(f"the chat template is not one that this version reads; {SAID}")
    system = SYSTEM.search(template)
    said = f"{START}system\n{system[1]}{END}\n" if system is not None and "{" not in system[1] else ""
    return f"{said}{START}user\n", f"{END}\n{START}assistant\n"
