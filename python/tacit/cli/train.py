"""`tacit train`: it loads the training code from `tacit_lab`, which is a distribution of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.expand import expand
from tacit.cli.options import AsJson, Preprocess
from tacit.errors import MisuseError

train = typer.Typer(help="Finetune models. Needs PyTorch: tacit[train].", no_args_is_help=True)
AS_GIVEN = {"allow_extra_args": True, "ignore_unknown_options": True}


@train.command(
    "glue",
    context_settings=AS_GIVEN,
    add_help_option=False,
    epilog="Example: `tacit train glue --task mrpc --original --out build/glue/mrpc`",
)
def glue_command(context: typer.Context) -> None:
    """Finetune an encoder on a task of GLUE, with its own functions or the unified ones of suite comet; see --help."""
    try:
        from tacit_lab.train.glue import main
    except ModuleNotFoundError as error:
        raise lacking(error, ", or run make train-glue TASK=mrpc") from error
    main(context.args)


@train.command(
    "ufo",
    context_settings=AS_GIVEN,
    add_help_option=False,
    epilog="Example: `tacit train ufo --out build/ufo/resnet20 --epochs 16`",
)
def ufo_command(context: typer.Context) -> None:
    """Train a ResNet of CIFAR-10 with low-bit weights of the Winograd domain for suite ufo; see --help."""
    try:
        from tacit_lab.train.ufo.command import main
    except ModuleNotFoundError as error:
        raise lacking(error, ", or run make train-ufo") from error
    main(context.args)


@dataclass(frozen=True)
class SquareOptions:
    """A network, what it is trained on, and where it goes."""

    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="Trained network with ReLUs.", show_default=False)]
    data: Annotated[Path, typer.Option(metavar="DATA.npz", help="Inputs `x` and class numbers `y` to train on.")]
    output: Annotated[Path, typer.Option("--output", "-o", metavar="X.onnx", help="File to write.")]
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 5
    rate: Annotated[float, typer.Option(min=1e-6, max=1.0, help="Largest learning rate.")] = 1e-3
    preprocess: Preprocess = None


def square_command(options: SquareOptions, json: AsJson = False) -> None:
    """Replace the ReLUs of a network by polynomials of degree 2, finetune it, and write it for suite lola.

    Max pools become average pools. Needs PyTorch: `pip install tacit[train]`.
    """
    try:
        from tacit_lab.train.square_command import square
    except ModuleNotFoundError as error:
        raise lacking(error) from error
    square(options, json)


train.command("square", epilog="Example: `tacit train square mnist.onnx --data train.npz -o square.onnx`")(
    expand(square_command)
)


@dataclass(frozen=True)
class BitsOptions:
    """A network, what it is trained on, how few bits it shall have, and where it goes."""

    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="Trained network with ReLUs.", show_default=False)]
    data: Annotated[Path, typer.Option(metavar="DATA.npz", help="Inputs `x` and class numbers `y` to train on.")]
    output: Annotated[Path, typer.Option("--output", "-o", metavar="X.onnx", help="File to write.")]
    weight_bits: Annotated[int, typer.Option(min=2, max=12, help="Bits of weights, the sign with them.")] = 4
    activation_bits: Annotated[int, typer.Option(min=2, max=12, help="Bits of activations.")] = 4
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 8
    rate: Annotated[float, typer.Option(min=1e-6, max=1.0, help="Largest learning rate.")] = 5e-4
    images: Annotated[bool, typer.Option("--images", help="Shift and mirror the inputs, which are pictures.")] = False
    preprocess: Preprocess = None


def bits_command(options: BitsOptions, json: AsJson = False) -> None:
    """Train a network with weights and activations of few bits, and write it as ONNX.

    Compile the result with the same --weight-bits and --activation-bits. The same command goes on with a training that
    was stopped. Needs PyTorch: `pip install tacit[train]`.
    """
    try:
        from tacit_lab.train.few_bits_command import few_bits
    except ModuleNotFoundError as error:
        raise lacking(error) from error
    few_bits(options, json)


train.command("bits", epilog="Example: `tacit train bits net.onnx --data train.npz --images -o net-4.onnx`")(
    expand(bits_command)
)


def lacking(error: ModuleNotFoundError, otherwise: str = "") -> MisuseError:
    """The error for a package that is not there: how to install it, and what may be done otherwise."""
    package = "PyTorch" if error.name == "torch" else error.name
    return MisuseError(f"training needs {package}: pip install 'tacit[train]'{otherwise}")
