"""The page of ONNX operators that compile, from the converters themselves.

`python scripts/operators_page.py` rewrites docs/reference/operators.md; with `--check` it only compares, and exit code
1 says that the page is out of date. What it says of an operator is the first sentence of its converter's docstring.
"""

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tacit.importers.classical import CLASSICAL
from tacit.importers.forms.defuse import RULES
from tacit.importers.forms.dequantise import QUANTISED
from tacit.importers.forms.graph import EXTRA
from tacit.importers.onnx import OPSETS
from tacit.importers.operators import CONVERTERS
from tacit.importers.rewrite import REWRITES
from tacit.importers.sequence import CONVERSIONS, FORMULAS, OPERATORS

PAGE = Path(__file__).parent.parent / "docs/reference/operators.md"
INTRODUCTION = f"""# Operators

Written by `scripts/operators_page.py` from the converters, and compared with them by a test. These operators of ONNX
compile, at opsets {OPSETS[0]} to {OPSETS[-1]}. `tacit compile MODEL.onnx --check` says of a model which of its nodes do
not, and what to do instead.

An operator is *read* as it is, or *rewritten* by others that are read. A network with operators of transformers or
products of two activations is a sequence, and some operators are read otherwise there. *In formulas* means as a part of
what is recognised as a whole: norms, GELU, masks and positions; alone such an operator is refused, unless constants
decide it. What constants decide is computed when the model is compiled, whatever operators that takes.
[Why is my layer slow?](../guides/why-slow.md) says what each kind of layer costs.
"""

QUANTISED_FORMS = """## Quantised models

Read back as the floats that they round, in ONNX's own domain and in `com.microsoft`. Operators that move integers about
(Concat, Flatten, Gather, MaxPool, Pad, Reshape, Slice, Split, Transpose and others) may stand between them.
"""

FUSED_FORMS = """## Fused operators

What onnxruntime's optimiser writes (domain `com.microsoft`) becomes the operators that it was made of; so do
some of ONNX's own of opset 23.
"""


def sentence(converter: Callable[..., Any] | None) -> str:
    """What a converter says of itself, for a cell of a table."""
    text = (inspect.getdoc(converter) or "").partition("\n\n")[0].replace("\n", " ") if converter else ""
    return text.replace("|", "\\|")


def rows() -> Iterator[str]:
    """A row for each operator of ONNX itself."""
    for name in sorted(CONVERTERS.keys() | OPERATORS | REWRITES.keys()):
        ways: list[tuple[str, Mapping[str, Any]]] = [("read", CONVERTERS), ("rewritten", REWRITES)]
        cells = [f"{kind}: {sentence(table[name]).removeprefix(f'{name}: ')}" for kind, table in ways if name in table]
        if name in CONVERSIONS:
            cells.append(f"read in sequences: {sentence(CONVERSIONS[name])}")
        elif name in FORMULAS or not cells:
            cells.append("in formulas")
        yield f"| {name} | {'<br>'.join(cells)} |"


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION, "| operator | |", "|---|---|", *rows(), ""]
    lines += ["## ai.onnx.ml", "", "What scikit-learn exports.", "", "| operator | |", "|---|---|"]
    lines += [f"| {name} | {sentence(CLASSICAL[name])} |" for name in sorted(CLASSICAL)]
    lines += ["", FUSED_FORMS, "| operator | |", "|---|---|"]
    fused = [(f"{domain}.{name}".lstrip("."), rule) for domain in ("", EXTRA) for name, rule in RULES[domain].items()]
    lines += [f"| {name} | {sentence(rule)} |" for name, rule in sorted(fused)]
    lines += ["", QUANTISED_FORMS, "| operator | |", "|---|---|"]
    lines += [f"| {name} | {sentence(QUANTISED[name]).removeprefix(f'{name}: ')} |" for name in sorted(QUANTISED)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    text = page()
    if not check:
        PAGE.write_text(text)
    elif not PAGE.is_file() or PAGE.read_text() != text:
        print(f"error: {PAGE.name} is out of date; run scripts/operators_page.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
