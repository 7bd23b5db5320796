"""The document as one HTML file that asks for nothing else."""

import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from tacit_lab.reproduce.harness import wording

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1c2430; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 3rem; border-top: 1px solid #d5dae1; padding-top: 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #e6e9ee; vertical-align: top; }
th { font-weight: 600; color: #4b5768; } .number { text-align: right; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dt { color: #4b5768; } dd { margin: 0; }
code, pre { font-size: .85rem; background: #f3f5f8; padding: .1rem .3rem; } pre { overflow-x: auto; padding: .6rem; }
.failed { color: #a8071a; } .skipped, .pending { color: #8a5a00; } svg { max-width: 100%; height: auto; }
"""


def page(found: dict[str, Any], figures: dict[str, str]) -> str:
    """A summary, then every table; `figures` are SVG files by table."""
    above = f"<h1>{wording.TITLE}</h1>", listed(wording.facts(found)), f"<p>{escape(wording.NOTE)}</p>"
    body = [*above, grid(wording.SUMMARY, map(outline, found["tables"]))]
    body += [section(entry, figures.get(entry["table"])) for entry in found["tables"]]
    head = f'<meta charset="utf-8"><title>{wording.TITLE}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body></html>\n"


def listed(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs) + "</dl>"


def grid(headings: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    """A table; cells are HTML."""
    marks = [' class="number"' if heading in wording.NUMBERS else "" for heading in headings]
    head = "".join(f"<th{mark}>{heading}</th>" for mark, heading in zip(marks, headings, strict=True))
    lines = ["".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(marks, row, strict=True)) for row in rows]
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def outline(entry: dict[str, Any]) -> tuple[str, ...]:
    """A table in the list of all, with a link to it."""
    name, source, what, status, *numbers = map(escape, wording.outline(entry))
    link, mark = f'<a href="#{name}">{name}</a>', f'<span class="{entry["status"]}">{status}</span>'
    return (link, source, what, mark, *numbers)


def section(entry: dict[str, Any], figure: str | None) -> str:
    """A table with its conditions and figure."""
    name = escape(entry["table"])
    parts = [f'<h2 id="{name}">{name}</h2>', f"<p>{escape(entry['what'])}</p>", listed(wording.circumstances(entry))]
    if "command" in entry:
        parts.append(f"<p><code>{escape(entry['command'])}</code></p>")
    if entry["status"] != "done":
        return "\n".join([*parts, f'<p class="{entry["status"]}">{escape(wording.status(entry))}</p>'])
    parts.append(grid(wording.ROWS, (map(escape, wording.cells(row)) for row in entry["rows"])))
    if "note" in entry:
        parts.append(f"<p>{escape(entry['note'])}</p>")
    if figure is not None:
        parts.append(inlined(figure, entry["table"]))
    return "\n".join([*parts, *besides(entry)])


def besides(entry: dict[str, Any]) -> Iterator[str]:
    """What was measured and has no number in the paper, folded away."""
    if entry.get("measured"):
        lines = "\n".join(json.dumps(line) for line in entry["measured"])
        yield f"<details><summary>measured besides</summary><pre>{escape(lines)}</pre></details>"


def inlined(svg: str, name: str) -> str:
    """An SVG file as an element: without its prologue, and with identifiers that no other figure has."""
    element = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", element)
