"""The documentation as a test sees it: blocks of code, commands in the text, and sections of the reference."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import typer
from tacit.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("**/*.md")])
FENCE = "```"
EXCUSE = re.compile(r"<!-- not run: (.+) -->")
INLINE = re.compile(r"`(tacit [^`]+)`")
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][a-z-]*")


class Block(NamedTuple):
    """A fenced block: where it begins, its language, its text, and why it is not run, if it is not."""

    page: Path
    line: int
    language: str
    content: str
    excuse: str | None


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    start = None
    for number, line in enumerate(lines):
        if not line.startswith(FENCE):
            continue
        if start is None:
            start = number
        else:
            before = next((text for text in reversed(lines[:start]) if text.strip()), "")
            excuse = EXCUSE.fullmatch(before.strip())
            content = "\n".join(lines[start + 1 : number]) + "\n"
            found.append(Block(page, start + 1, lines[start][3:], content, excuse and excuse[1]))
            start = None
    assert start is None, f"{page}: a block without an end"
    return found


def prose(page: Path) -> str:
    """A page without its blocks."""
    parts = page.read_text(encoding="utf-8").split(f"\n{FENCE}")
    return "\n".join(part.partition("\n")[2] if index else part for index, part in enumerate(parts) if index % 2 == 0)


def inline(page: Path) -> list[str]:
    """Commands in the text: `tacit ...`, on one line or across two."""
    return [" ".join(found.split()) for found in INLINE.findall(prose(page))]


def joined(content: str) -> list[str]:
    """Lines of a shell block; a backslash at the end goes on in the next line."""
    return content.replace("\\\n", " ").splitlines()


def commands() -> dict[str, Any]:
    """All commands by name, such as `bench relu`."""
    found: dict[str, Any] = {}

    def walk(group: Any, prefix: str) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, f"{prefix}{name} ")
            else:
                found[f"{prefix}{name}"] = command

    walk(typer.main.get_command(app), "")
    return found


COMMANDS = commands()
GROUPS = {name.split()[0] for name in COMMANDS if " " in name}


def split(arguments: list[str]) -> tuple[str, list[str]]:
    """The command that arguments name, and what follows; KeyError if there is none."""
    for words in (2, 1):
        name = " ".join(arguments[:words])
        if len(arguments) >= words and name in COMMANDS:
            return name, arguments[words:]
    raise KeyError(f"no command `tacit {' '.join(arguments)}`")


def reads_its_own_options(name: str) -> bool:
    """Whether a command hands everything on to a reader of its own."""
    return bool(COMMANDS[name].context_settings.get("ignore_unknown_options"))


def meant(command: str) -> list[str]:
    """The commands that a text such as `tacit bench relu|argmax ...` means; none for one that only begins."""
    words = [word for word in command.replace("[", "").replace("]", "").split()[1:] if not word.startswith("-")][:2]
    if not words or words[0] == "COMMAND" or (len(words) == 1 and words[0] in GROUPS):
        return []
    head, *rest = words
    return [split([head, *choice])[0] for choice in ([[name] for name in rest[0].split("|")] if rest else [[]])]


def parse(arguments: list[str]) -> None:
    """Read a command line as the CLI does, without running it; raises what the CLI raises."""
    name, rest = split(arguments)
    COMMANDS[name].make_context(name, rest)


def options(name: str) -> set[str]:
    """All options of a command, in every spelling."""
    return {spelling for parameter in COMMANDS[name].params for spelling in parameter.opts if spelling.startswith("-")}


def named_options(text: str) -> set[str]:
    """Options that a text names."""
    return set(OPTION.findall(text))


def sections(page: Path) -> dict[str, str]:
    """Text by heading of the second level."""
    parts = re.split(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}
