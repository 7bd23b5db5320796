"""`tacit simulate`."""

from typing import Annotated, Literal

import typer

from tacit.cli.clipping import check
from tacit.cli.options import AsJson, InputFiles, ModelFile, Strict, Texts
from tacit.cli.results import by_name, estimated, show_results
from tacit.data.inputs import read
from tacit.data.parts import apart
from tacit.model import Model
from tacit.report import sentences, terminal
from tacit.session.client import classes


def simulate(
    model: ModelFile,
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
    given = read(inputs or [], text, compiled.wanted, compiled.preprocessing, compiled.text)
    clipped = check(given.x, compiled.bounds, strict)
    with terminal.progress("simulating") as advance:
        outputs = compiled.simulate(given.x, advance, seed if rounding == "stochastic" else None)
    values = compiled.real(outputs)
    labels = classes(outputs)
    if json:
        content = {"model": str(model), "inputs": len(given.x), "output": labels.tolist()}
        content |= {"logits": outputs.tolist(), "output_scale": compiled.output_scale}
        content |= {"shape": list(compiled.output_shape), "clipped": clipped}
        content |= by_name(apart(compiled.outputs, values)) if len(compiled.outputs) > 1 else {}
        content |= estimated(compiled.link, values)
        terminal.emit_json({**content, **sentences.content(compiled.text, given, values)})
        return
    names = compiled.description.get("labels", [])
    shape, link = compiled.output_shape, compiled.link
    show_results(given, compiled.text, labels, values, names, shape, parts=compiled.outputs, link=link)
