"""`tacit compile`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tacit import report
from tacit.data import load
from tacit.options import AcceptLeakage, AsJson, Preprocess, Suite, class_names, interval
from tacit.preprocess import parse


def compile_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="Trained float model.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="X.tacit", help="File to write.")],
    suite: Annotated[
        Suite,
        typer.Option(
            help="Protocols to use: auto, gazelle, gala, falcon-ntt (the last three always round exactly), "
            "or falcon, which leaks."
        ),
    ] = Suite.AUTO,
    calibrate: Annotated[
        Path | None, typer.Option(metavar="DATA.npz", help="Example inputs `x`, float32 (or pixels), N first.")
    ] = None,
    input_range: Annotated[
        str | None, typer.Option(metavar="LO,HI", help="Range of the input. Default: 0,1 or what DATA shows.")
    ] = None,
    weight_bits: Annotated[int, typer.Option(min=2, max=12, help="Bits of a weight, before channel factors.")] = 8,
    activation_bits: Annotated[int, typer.Option(min=2, max=12, help="Bits of an activation.")] = 8,
    clip_percentile: Annotated[
        float | None,
        typer.Option(min=50.1, max=99.99999, metavar="P", help="Cut activation ranges at percentile P, such as 99.99."),
    ] = None,
    no_bias_correction: Annotated[
        bool,
        typer.Option(
            "--no-bias-correction",
            help="Leave biases as they are: with DATA they make up for what rounding weights does to means of outputs.",
        ),
    ] = False,
    rounding: Annotated[
        Literal["stochastic", "exact"],
        typer.Option(help="exact equals `simulate` in every bit; stochastic is cheaper."),
    ] = "stochastic",
    nonlinear: Annotated[
        Literal["ot", "gc"] | None,
        typer.Option(
            help="ReLU, pools, rescaling, argmax by oblivious transfer or garbled circuits. "
            "[falcon-ntt, falcon: gc, else: ot]"
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Class names, one per line, or column `name` of a .tsv.")
    ] = None,
    preprocess: Preprocess = None,
    accept_leakage: AcceptLeakage = False,
    json: AsJson = False,
) -> None:
    """Quantise a trained ONNX model into a .tacit file that `serve` and `run` can use.

    Shapes, operators and bit widths in it are public to clients; the weights are not. Calibrate
    with a hundred or so typical inputs: activations saturate at the ranges seen there. With
    --preprocess the model takes pictures too: `run`, `simulate` and `evaluate` prepare them.
    """
    from tacit.compile import Options, compile_model

    bounds = None if input_range is None else interval(input_range)
    preprocessing = None if preprocess is None else parse(preprocess)
    x = None if calibrate is None else load(calibrate, None, preprocessing).x
    if x is None:
        low, high = bounds or (0.0, 1.0)
        report.warn(
            f"no --calibrate: ranges are guessed from random inputs in [{low:g}, {high:g}]; accuracy may suffer"
        )
    options = Options(
        str(suite),
        weight_bits,
        activation_bits,
        rounding,
        class_names(labels),
        clip_percentile,
        preprocessing,
        not no_bias_correction,
        nonlinear or ("gc" if suite in (Suite.FALCON_NTT, Suite.FALCON) else "ot"),
        accept_leakage,
    )
    summary = {"output": str(output), **compile_model(model, output, x, bounds, options)}
    if json:
        report.emit_json(summary)
        return
    report.console.print(report.model_table(summary))
    report.console.print(f"wrote {output}", highlight=False)
