"""`tacit simulate`."""

from typing import Annotated, Literal

import typer

from tacit.cli.clipping import check
from tacit.cli.options import AsJson, InputFiles, ModelFile, Strict, Texts
from tacit.cli.results import by_name, estimated, show_results
from tacit.cli.rows import RowOptions, are_rows
from tacit.data.inputs import read
from tacit.data.parts import apart
from tacit.data.schema import usual
from tacit.model import Model
from tacit.report import sentences, terminal
from tacit.session.client import classes


def simulate(
    model: ModelFile,
    rows: RowOptions,
    inputs: InputFiles = None,
    text: Texts = None,
    strict: Strict = False,
    rounding: Annotated[
        Literal["exact", "stochastic"],
        typer.Option(
            help="exact: to nearest, which a model compiled with --rounding exact equals in every bit. stochastic: up "
            "or down by chance where the default protocols do."
        ),
    ] = "exact",
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Of --rounding stochastic: what chance begins at.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Run the integer interpreter in the clear: the result a private run must give.

    Inputs of a model with states are those of one stream, in order.
    """
    compiled = Model(model)
    wanted = compiled.wanted._replace(kept=rows.kept)
    given = read(inputs or [], text, wanted, compiled.preprocessing, compiled.text)
    clipped = check(given.x, compiled.bounds, strict)
    with terminal.progress("simulating") as advance:
        outputs = compiled.simulate(given.x, advance, seed if rounding == "stochastic" else None)
    values = compiled.real(outputs)
    labels = classes(outputs)
    names = compiled.description.get("labels", [])
    meaning = None if compiled.schema is None else compiled.schema.result
    single = len(compiled.outputs) <= 1 and are_rows(given, rows, meaning, inputs or [])
    known = usual(values.shape[1], names, compiled.link)
    found = rows.results(given, values, labels, meaning or known, names) if single else None
    if found is not None and rows.output is not None:
        found.write(rows.output)
    if json:
        content = {"model": str(model), "inputs": len(given.x), "output": labels.tolist()}
        content |= {"logits": outputs.tolist(), "output_scale": compiled.output_scale}
        content |= {"shape": list(compiled.output_shape), "clipped": clipped}
        content |= by_name(apart(compiled.outputs, values)) if len(compiled.outputs) > 1 else {}
        content |= estimated(compiled.link, values)
        content |= {} if found is None else found.fields()
        terminal.emit_json({**content, **sentences.content(compiled.text, given, values)})
        return
    if found is not None:
        found.show()
        return
    shape, link = compiled.output_shape, compiled.link
    show_results(given, compiled.text, labels, values, names, shape, parts=compiled.outputs, link=link)
