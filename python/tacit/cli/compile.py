"""`tacit compile`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from tacit.cli.checking import report
from tacit.cli.options import (
    AcceptLeakage,
    AsJson,
    Preprocess,
    Suite,
    Switch,
    against_client,
    assigned,
    class_names,
    interval,
    pair,
    shape,
    widths,
)
from tacit.data import corpus, processor
from tacit.data.examples import by_name, load
from tacit.data.preprocess import Preprocessing, parse
from tacit.data.text import LONGEST_SEQUENCE
from tacit.errors import MisuseError
from tacit.report import terminal

if TYPE_CHECKING:
    from tacit.compiler.compiler import Options
    from tacit.compiler.reading import Reading


@dataclass(frozen=True)
class CompileOptions:
    """How to quantise a model, and for which protocols."""

    suite: Annotated[
        Suite,
        typer.Option(
            help="Protocols to use: auto; ufo, for weights and activations of few bits; comet, for models trained "
            "with smooth maxima; gazelle, gala, falcon-ntt, which always round exactly; lola, one message "
            "each way, for networks of squares; or falcon, which leaks."
        ),
    ] = Suite.AUTO
    secure_against: Annotated[
        Literal["client"] | None,
        typer.Option(
            help="client: a client that sends anything learns no more of the weights than its results say, by a check "
            "before them; for linear layers, ReLUs, pools and residual sums, and with open points of its proof "
            "(docs/protocols/malicious-client.md). Default: both parties are to follow the protocol."
        ),
    ] = None
    calibrate: Annotated[
        Path | None,
        typer.Option(metavar="DATA.npz|TEXTS", help="Example inputs `x`, float32 (or pixels), N first; or .txt, .tsv."),
    ] = None
    input_range: Annotated[
        str | None, typer.Option(metavar="LO,HI", help="Range of the input. Default: 0,1 or what DATA shows.")
    ] = None
    weight_bits: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=12,
            help="Bits of a weight, before channel factors. "
            "[8 to 12, as results need; for text and with --state 10, for lola 5, for ufo 4]",
        ),
    ] = None
    activation_bits: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=12,
            help="Bits of an activation, more where text needs them. "
            "[8 to 12, as results need; with --state 9, of lola's input 3, for ufo 6]",
        ),
    ] = None
    clip_percentile: Annotated[
        float | None,
        typer.Option(min=50.1, max=99.99999, metavar="P", help="Cut activation ranges at percentile P, such as 99.99."),
    ] = None
    clip: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="Where activation ranges end: minmax, percentile:P, mse (least squared error at the activations' "
            "bits) or kl (least divergence of the histogram).",
        ),
    ] = "minmax"
    equalise: Annotated[
        Literal["auto", "on", "off"],
        typer.Option(
            help="With DATA, make ranges of channels even: factors move between layers and the function stays. "
            "auto: only where ranges are very uneven."
        ),
    ] = "auto"
    weight_rounding: Annotated[
        Literal["nearest", "fed-back"],
        typer.Option(
            help="fed-back: with DATA, each weight makes up for the rounding of others, which is worth a bit."
        ),
    ] = "nearest"
    target_agreement: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            max=1.0,
            metavar="P",
            help="Search the cheapest bits and clipping that agree with the float model on this part of DATA.",
        ),
    ] = None
    no_bias_correction: Annotated[
        bool,
        typer.Option(
            "--no-bias-correction",
            help="Leave biases as they are: with DATA they make up for what rounding weights does to means of outputs.",
        ),
    ] = False
    rounding: Annotated[
        Literal["stochastic", "exact"],
        typer.Option(help="exact equals `simulate` in every bit; stochastic is cheaper."),
    ] = "stochastic"
    nonlinear: Annotated[
        Literal["ot", "gc"] | None,
        typer.Option(
            help="ReLU, pools, rescaling, argmax by oblivious transfer or garbled circuits. "
            "[falcon-ntt, falcon: gc, else: ot]"
        ),
    ] = None
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Class names, one per line, or column `name` of a .tsv.")
    ] = None
    preprocess: Preprocess = None
    sequence: Annotated[
        int | None,
        typer.Option(min=1, max=LONGEST_SEQUENCE, metavar="N", help="Tokens of an input, for a model that reads text."),
    ] = None
    tokenizer: Annotated[
        Path | None,
        typer.Option(metavar="tokenizer.json", help="Of a model that reads text. Default: the one beside it."),
    ] = None
    public_embedding: Annotated[
        bool,
        typer.Option(
            "--public-embedding",
            help="Cheaper: clients get the embedding of a directory of Hugging Face, in X.text, and look tokens up "
            "themselves. Anyone who has X.text can read it.",
        ),
    ] = False
    layer_bits: Annotated[
        str | None, typer.Option(metavar="B,B,..", help="Of lola, ufo: bits of the weights, layer by layer.")
    ] = None
    margin_bits: Annotated[
        int, typer.Option(min=0, max=16, help="Of lola: bits that outputs get beyond the largest of DATA.")
    ] = 2
    packing: Annotated[
        Literal["dense", "convolution", "sparse"] | None,
        typer.Option(help="Of lola: how clients pack inputs. Default: the cheapest way."),
    ] = None
    disable_pass: Annotated[
        list[Switch] | None,
        typer.Option(
            metavar="PASS",
            help="Of ufo, to measure what a pass is worth; may be repeated. winograd: 3x3 convolutions as others. "
            "fusion: a conversion of its own for each change of width. residual: both branches converted before they "
            "are added. sign: a ReLU's sign forgotten. reweighting: weights in two's complement.",
        ),
    ] = None
    salt_of: Annotated[
        Path | None,
        typer.Option(
            metavar="X.tacit", help="Take the salt of this earlier file, so that the bytes are the same again."
        ),
    ] = None
    result: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of an ONNX file, the outputs or inner tensors to compute, NAME,NAME for several; only what they need "
            "is compiled. Default: scores rather than labels and hidden states.",
        ),
    ] = None
    input_shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]1x3x224x224",
            help="Of an ONNX file with dynamic sizes: the shape of an input, the batch first; may be repeated. "
            "Without NAME of the only input.",
        ),
    ] = None
    input_value: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Of an ONNX file with an input that is a single number and no secret, such as a sampling rate: "
            "its value, the same for everybody; may be repeated.",
        ),
    ] = None
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IN=OUT",
            help="Keep a state from one input of a session to the next, shared so that nobody sees it: what output OUT "
            "is after an input, input IN is before the next. Sessions begin with zeros. May be repeated.",
        ),
    ] = None
    accept_leakage: AcceptLeakage = False
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Of language models: the text before every prompt, the same for everybody, which the server computes "
            "in the clear; by default that of the chat template.",
        ),
    ] = None
    suffix: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Of language models: the text between a prompt and its answer; by default that of the chat template.",
        ),
    ] = None

    context: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Of language models: read one token at a time, and keep keys and values of the last N shared between "
            "client and server, so that nobody computes them twice and nobody sees them. In place of --sequence.",
        ),
    ] = None

    @property
    def protocols(self) -> str:
        """The suite; raises `BadParameter` where it has no form that is secure against what was named."""
        if self.secure_against is None:
            return str(self.suite)
        return against_client(self.suite, self.nonlinear)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The range of the input, if it was named."""
        return None if self.input_range is None else interval(self.input_range)

    def preprocessing(self, model: Path) -> Preprocessing | None:
        """How pixels become inputs, if `model` takes any; a directory may say it itself."""
        return processor.read(model) if self.preprocess is None else parse(self.preprocess)

    def reads_text(self, model: Path, trained: bool) -> bool:
        """Whether `model` reads text; `trained` says that it is a directory of a network trained with few bits."""
        from tacit.importers.gguf import is_gguf
        from tacit.importers.huggingface import reads_pictures

        named = is_gguf(model) or self.sequence is not None or self.tokenizer is not None or self.public_embedding
        named = named or self.context is not None
        return named or self.texts is not None or (model.is_dir() and not trained and not reads_pictures(model))

    @property
    def texts(self) -> Path | None:
        """The file to calibrate with, if it is one of texts."""
        return self.calibrate if self.calibrate is not None and corpus.is_text(self.calibrate) else None

    def reading(self) -> "Reading":
        """What the compiler needs of a model that reads text."""
        from tacit.compiler.reading import Reading

        lines = corpus.Corpus(()) if self.texts is None else corpus.load(self.texts)
        texts, pairs = lines.inputs(False), lines.inputs(True)
        public = self.public_embedding
        if self.context is not None and self.sequence is not None:
            raise MisuseError("two lengths: a model with a --context reads one token at a time; leave --sequence out")
        around = self.prefix, self.suffix, self.context
        return Reading(self.sequence, self.tokenizer, texts, pairs, public, *around)

    def inputs(self, model: Path) -> NDArray[np.float32] | dict[str, NDArray[np.float32]] | None:
        """Example inputs to calibrate with, by name where there are several; None for texts, and without any."""
        if self.calibrate is None or self.texts is not None:
            return None
        named = by_name(self.calibrate)
        if named is not None:
            return {name: array for name, array in named.items() if name != "y"}
        return load(self.calibrate, None, self.preprocessing(model)).x

    def options(self, model: Path, reading: "Reading | None") -> "Options":
        """The options as the compiler reads them."""
        from tacit.compiler.compiler import Options
        from tacit.compiler.reading import own_labels

        return Options(
            suite=self.protocols,
            weight_bits=self.weight_bits,
            activation_bits=self.activation_bits,
            rounding=self.rounding,
            labels=class_names(self.labels) if self.labels is not None else own_labels(model),
            clip_percentile=self.clip_percentile,
            clip=self.clip,
            equalise=self.equalise,
            target_agreement=self.target_agreement,
            weight_rounding=self.weight_rounding,
            preprocessing=self.preprocessing(model),
            bias_correction=not self.no_bias_correction,
            nonlinear=self.nonlinear or ("gc" if self.suite in (Suite.FALCON_NTT, Suite.FALCON) else "ot"),
            accept_leakage=self.accept_leakage,
            reading=reading,
            layer_bits=() if self.layer_bits is None else widths(self.layer_bits),
            margin_bits=self.margin_bits,
            packing=self.packing,
            salt_of=self.salt_of,
            result=self.result,
            input_shapes=tuple(shape(text) for text in self.input_shape or ()),
            states=tuple(pair(text) for text in self.state or ()),
            input_values=tuple(assigned(text) for text in self.input_value or ()),
            say=terminal.note,
            disabled=tuple(dict.fromkeys(switch.value for switch in self.disable_pass or ())),
        )


def compile_command(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL.onnx|DIR|MODEL.json|.ubj|.txt|.gguf",
            help="Trained float model, a directory of Hugging Face, one of a network trained with few bits, a model of "
            "XGBoost, LightGBM or CatBoost, or a language model of llama.cpp.",
            show_default=False,
        ),
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="X.tacit", help="File to write; required without --check.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: say everything that keeps the model from being compiled.")
    ] = False,
    options: CompileOptions,
    json: AsJson = False,
) -> None:
    """Quantise a trained ONNX model into a .tacit file that `serve` and `run` can use.

    Shapes, operators and bit widths in it are public to clients; the weights are not. Calibrate
    with a hundred or so typical inputs: activations saturate at the ranges seen there. With
    --preprocess the model takes pictures too: `run`, `simulate` and `evaluate` prepare them. A model
    that reads text needs --sequence: all texts fill that many tokens, and servers learn nothing else
    of their lengths. For its clients X.text is written too. With --check nothing is written: all problems
    are listed, each with what to do about it, and the exit code is 1 if there are any.
    """
    if check:
        report(model, options, compiled, json)
        return
    if output is None:
        raise typer.BadParameter("name the file to write: -o X.tacit", param_hint="'--output' / '-o'")
    summary = {"file": str(output), **compiled(model, output, options)}
    if json:
        terminal.emit_json(summary)
        return
    terminal.console.print(terminal.model_table(summary))
    if "target" in summary:
        terminal.console.print(terminal.candidate_table(summary["target"]))
    terminal.console.print(f"wrote {output}", highlight=False)
    if "plan" in summary:
        terminal.console.print(f"wrote {summary['plan']}: clients who send files need it", highlight=False)
    if "schema" in summary:
        terminal.console.print(f"wrote {summary['schema']}: clients read tables with it", highlight=False)
    if "text" in summary:
        terminal.console.print(f"wrote {summary['text']}: give it to clients", highlight=False)


def compiled(model: Path, output: Path, options: CompileOptions) -> dict[str, Any]:
    """Compile `model` into `output`, with a warning where nothing calibrates it; gives the summary of its layers."""
    from tacit.compiler.compiler import compile_model
    from tacit.compiler.trees import are_trees
    from tacit.importers.quantised import is_quantised

    if are_trees(model):
        return compile_model(model, output, None, None, options.options(model, None))
    trained = is_quantised(model)
    reading = options.reading() if options.reads_text(model, trained) else None
    x = options.inputs(model)
    if reading is not None and options.calibrate is None:
        terminal.warn("no --calibrate: ranges come from thirty short English texts; texts like yours may do better")
    elif x is None and reading is None and not trained:
        low, high = options.bounds or (0.0, 1.0)
        terminal.warn(
            f"no --calibrate: ranges are guessed from random inputs in [{low:g}, {high:g}]; accuracy may suffer"
        )
    chosen = options.options(model, reading)
    if chosen.target_agreement is not None:
        from tacit.compiler.target import compile_to_target

        return compile_to_target(model, output, x, options.bounds, chosen)
    return compile_model(model, output, x, options.bounds, chosen)
