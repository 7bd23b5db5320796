"""`tacit compile`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tacit import corpus, report
from tacit.data import load
from tacit.options import AcceptLeakage, AsJson, Preprocess, Suite, Switch, class_names, interval, widths
from tacit.preprocess import parse
from tacit.text import LONGEST_SEQUENCE


def compile_command(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL.onnx|DIR",
            help="Trained float model, a directory of Hugging Face, or one of a network trained with few bits.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="X.tacit", help="File to write.")],
    suite: Annotated[
        Suite,
        typer.Option(
            help="Protocols to use: auto; ufo, for weights and activations of few bits; comet, for models trained "
            "with smooth maxima; gazelle, gala, falcon-ntt, which always round exactly; lola, one message "
            "each way, for networks of squares; or falcon, which leaks."
        ),
    ] = Suite.AUTO,
    calibrate: Annotated[
        Path | None,
        typer.Option(metavar="DATA.npz|TEXTS", help="Example inputs `x`, float32 (or pixels), N first; or .txt, .tsv."),
    ] = None,
    input_range: Annotated[
        str | None, typer.Option(metavar="LO,HI", help="Range of the input. Default: 0,1 or what DATA shows.")
    ] = None,
    weight_bits: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=12,
            help="Bits of a weight, before channel factors. [8; for models of text 10, for lola 5, for ufo 4]",
        ),
    ] = None,
    activation_bits: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=12,
            help="Bits of an activation, more where models of text need them. [8; of lola's input 3, for ufo 6]",
        ),
    ] = None,
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
    sequence: Annotated[
        int | None,
        typer.Option(min=1, max=LONGEST_SEQUENCE, metavar="N", help="Tokens of an input, for a model that reads text."),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(metavar="tokenizer.json", help="Of a model that reads text. Default: the one beside it."),
    ] = None,
    public_embedding: Annotated[
        bool,
        typer.Option(
            "--public-embedding",
            help="Cheaper: clients get the embedding of a directory of Hugging Face, in X.text, and look tokens up "
            "themselves. Anyone who has X.text can read it.",
        ),
    ] = False,
    layer_bits: Annotated[
        str | None, typer.Option(metavar="B,B,..", help="Of lola, ufo: bits of the weights, layer by layer.")
    ] = None,
    margin_bits: Annotated[
        int, typer.Option(min=0, max=16, help="Of lola: bits that outputs get beyond the largest of DATA.")
    ] = 2,
    packing: Annotated[
        Literal["dense", "convolution", "sparse"] | None,
        typer.Option(help="Of lola: how clients pack inputs. Default: the cheapest way."),
    ] = None,
    disable_pass: Annotated[
        list[Switch] | None,
        typer.Option(
            metavar="PASS",
            help="Of ufo, to measure what a pass is worth; may be repeated. winograd: 3x3 convolutions as others. "
            "fusion: a conversion of its own for each change of width. residual: both branches converted before they "
            "are added. sign: a ReLU's sign forgotten. reweighting: weights in two's complement.",
        ),
    ] = None,
    accept_leakage: AcceptLeakage = False,
    json: AsJson = False,
) -> None:
    """Quantise a trained ONNX model into a .tacit file that `serve` and `run` can use.

    Shapes, operators and bit widths in it are public to clients; the weights are not. Calibrate
    with a hundred or so typical inputs: activations saturate at the ranges seen there. With
    --preprocess the model takes pictures too: `run`, `simulate` and `evaluate` prepare them. A model
    that reads text needs --sequence: all texts fill that many tokens, and servers learn nothing else
    of their lengths. For its clients X.text is written too.
    """
    from tacit.compile import Options, compile_model
    from tacit.importers.quantised import is_quantised
    from tacit.reading import Reading, own_labels

    bounds = None if input_range is None else interval(input_range)
    preprocessing = None if preprocess is None else parse(preprocess)
    reading, texts = None, calibrate is not None and corpus.is_text(calibrate)
    trained = is_quantised(model)
    reads = model.is_dir() and not trained
    if sequence is not None or tokenizer is not None or texts or public_embedding or reads:
        lines = corpus.load(calibrate) if calibrate is not None and texts else corpus.Corpus(())
        reading = Reading(sequence, tokenizer, lines.inputs(False), lines.inputs(True), public_embedding)
    x = None if calibrate is None or texts else load(calibrate, None, preprocessing).x
    if reading is not None and calibrate is None:
        report.warn("no --calibrate: ranges come from thirty short English texts; texts like yours may do better")
    elif x is None and reading is None and not trained:
        low, high = bounds or (0.0, 1.0)
        report.warn(
            f"no --calibrate: ranges are guessed from random inputs in [{low:g}, {high:g}]; accuracy may suffer"
        )
    options = Options(
        str(suite),
        weight_bits,
        activation_bits,
        rounding,
        class_names(labels) if labels is not None else own_labels(model),
        clip_percentile,
        preprocessing,
        not no_bias_correction,
        nonlinear or ("gc" if suite in (Suite.FALCON_NTT, Suite.FALCON) else "ot"),
        accept_leakage,
        reading,
        () if layer_bits is None else widths(layer_bits),
        margin_bits,
        packing,
        tuple(dict.fromkeys(switch.value for switch in disable_pass or ())),
    )
    summary = {"file": str(output), **compile_model(model, output, x, bounds, options)}
    if json:
        report.emit_json(summary)
        return
    report.console.print(report.model_table(summary))
    report.console.print(f"wrote {output}", highlight=False)
    if "plan" in summary:
        report.console.print(f"wrote {summary['plan']}: clients who send files need it", highlight=False)
    if "text" in summary:
        report.console.print(f"wrote {summary['text']}: give it to clients", highlight=False)
