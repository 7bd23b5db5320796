"""HTML by construction: whatever is not `Markup` is escaped. Names come from peers and from files."""

from collections.abc import Iterable
from html import escape

VOID = frozenset({"meta", "br", "hr"})
WRITTEN = {"class_": "class", "for_": "for"}


class Markup(str):
    """HTML that is written as it is."""

    __slots__ = ()


def text(content: str) -> Markup:
    """Content as HTML, without characters that no page may have."""
    if isinstance(content, Markup):
        return content
    known = content.encode("utf-8", "replace").decode("utf-8")
    return Markup(
        escape(
            "".join(
                letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in known
            )
        )
    )


def join(parts: Iterable[str]) -> Markup:
    """Parts one after another."""
    return Markup("".join(map(text, parts)))


def element(tag: str, *content: str, **attributes: object) -> Markup:
    """One element; attributes that are None are left out, and `_` in their names is `-`."""
    written = "".join(
        f' {WRITTEN.get(name, name.replace("_", "-"))}="{text(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    closing = "" if tag in VOID else f"{join(content)}</{tag}>"
    return Markup(f"<{tag}{written}>{closing}")
