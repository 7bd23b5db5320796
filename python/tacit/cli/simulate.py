"""`tacit simulate`."""

import numpy as np

from tacit.cli.clipping import check
from tacit.cli.options import AsJson, InputFiles, ModelFile, Strict, Texts
from tacit.cli.results import show_results
from tacit.data.inputs import read
from tacit.model import Model
from tacit.report import sentences, terminal
from tacit.session.client import classes


def simulate(
    model: ModelFile,
    inputs: InputFiles = None,
    text: Texts = None,
    strict: Strict = False,
    json: AsJson = False,
) -> None:
    """Run the integer interpreter in the clear: the result a private run must give."""
    compiled = Model(model)
    given = read(inputs or [], text, compiled.input_shape, compiled.preprocessing, compiled.text)
    clipped = check(given.x, compiled.bounds, strict)
    with terminal.progress("simulating") as advance:
        outputs = compiled.simulate(given.x, advance)
    values = np.multiply(outputs, compiled.output_scale, dtype=np.float64)
    labels = classes(outputs)
    if json:
        content = {"model": str(model), "inputs": len(given.x), "output": labels.tolist()}
        content |= {"logits": outputs.tolist(), "output_scale": compiled.output_scale}
        content |= {"shape": list(compiled.output_shape), "clipped": clipped}
        terminal.emit_json({**content, **sentences.content(compiled.text, given, values)})
        return
    names = compiled.description.get("labels", [])
    show_results(given, compiled.text, labels, values, names, compiled.output_shape)
