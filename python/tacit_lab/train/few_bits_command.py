"""What `tacit train bits` does."""

import onnx
from tacit.cli.train import BitsOptions
from tacit.data.examples import load
from tacit.data.preprocess import parse
from tacit.errors import MisuseError
from tacit.report import terminal

from tacit_lab.train.few_bits import Training, as_onnx, learn
from tacit_lab.train.square_command import right


def few_bits(options: BitsOptions, json: bool) -> None:
    """Train the network, write it, and say how many of the training inputs it gets right."""
    preprocessing = None if options.preprocess is None else parse(options.preprocess)
    examples = load(options.data, None, preprocessing)
    if examples.y is None:
        raise MisuseError(f"{options.data} has no class numbers `y`")
    if options.images and examples.x.ndim != 4:
        raise MisuseError(f"--images shifts pictures (N, channels, height, width); {options.data} has none")
    bits = (options.weight_bits, options.activation_bits)
    checkpoint = options.output.with_name(f"{options.output.name}.checkpoint")
    how = Training(options.epochs, options.rate, options.images, checkpoint)
    trained = learn(options.model, examples.x, examples.y, bits, how)
    onnx.save(as_onnx(trained), options.output)
    checkpoint.unlink(missing_ok=True)
    content = {
        "output": str(options.output),
        "weight_bits": options.weight_bits,
        "activation_bits": options.activation_bits,
        "inputs": len(examples.y),
        "top1": right(trained, examples.x, examples.y),
    }
    if json:
        terminal.emit_json(content)
        return
    words = f"compile it with --weight-bits {options.weight_bits} --activation-bits {options.activation_bits}"
    terminal.console.print(
        f"wrote {options.output}; {content['top1']:.2%} of the training data; {words}", highlight=False
    )
