"""`tacit bench`: one command per operation, two processes over TLS each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tacit import _core
from tacit.cli.expand import expand
from tacit.cli.options import AcceptLeakage, AsJson, ModelFile, Network, Suite, Threads, Timeout, Transfers
from tacit.cli.pair import PlannedPairOptions
from tacit.data.examples import load
from tacit.errors import MisuseError
from tacit.measure.bench import bench_model, random_examples
from tacit.measure.operation import OperationPair, bench_operation
from tacit.model import Model
from tacit.report import terminal
from tacit.session.client import TIMEOUT_SECONDS

bench = typer.Typer(help="Measure costs on this machine.", no_args_is_help=True, rich_markup_mode="markdown")

Repeat = Annotated[int, typer.Option(min=1, help="Fresh sessions; the one of median time is reported.")]
Size = Annotated[int, typer.Option(min=1)]
WeightBits = Annotated[
    int, typer.Option(min=1, max=12, help="Signed width of weights, for conv and matmul; 1 with suite ufo only.")
]
ActivationBits = Annotated[
    int,
    typer.Option(
        min=1,
        max=12,
        help="Signed width of inputs (with suite ufo they are not negative); with --saturate the bits of the largest "
        "result.",
    ),
]
LINEAR = ("conv", "matmul")
CIRCUITS = ("relu", "maxpool", "argmax", "truncate", "extend")
SuiteOption = Annotated[
    Suite,
    typer.Option(
        help="auto, ufo, gazelle, gala: protocols of conv and matmul, the rest is the same in all; falcon-ntt: "
        "circuits too."
    ),
]
Start = Literal["affine", "flooding", "crypten", "taylor-high", "taylor-low", "table"]
Roots = Literal["row", "element"]
RoundingOption = Annotated[
    Literal["stochastic", "exact"], typer.Option(help="How linear layers rescale; the other operations are exact.")
]
Radix = Annotated[int | None, typer.Option(min=1, max=8, help="Bits of a comparison's digits; else as in the suite.")]
ON_SHARES = "Two processes over TLS on random shares; the result is checked after the measurement."


@dataclass(frozen=True)
class MeasureOptions:
    """How often and under what conditions an operation is measured."""

    suite: SuiteOption = Suite.AUTO
    network: Network = None
    threads: Threads = 1
    repeat: Repeat = 3
    timeout: Timeout = TIMEOUT_SECONDS
    json: AsJson = False

    def pair(self, operation: dict[str, Any], ot: str, offline: bool) -> OperationPair:
        """Both parties for an operation."""
        return OperationPair(
            operation,
            threads=self.threads,
            timeout_seconds=self.timeout,
            network=self.network,
            ot=ot,
            offline=offline,
        )


@dataclass(frozen=True)
class LayerWidths:
    """Widths and rounding of a linear layer; other operations take the options and ignore them."""

    weight_bits: WeightBits = 8
    activation_bits: ActivationBits = 8
    rounding: RoundingOption = "stochastic"

    def fields(self) -> dict[str, Any]:
        """The options as the core reads them."""
        widths = {"weight_bits": self.weight_bits, "activation_bits": self.activation_bits}
        return {**widths, "rounding": self.rounding}


@dataclass(frozen=True)
class Correlations:
    """Where correlations come from, and when."""

    ot: Transfers = "auto"
    offline: Annotated[bool, typer.Option("--offline", help="Run the layer on a mask before the input exists.")] = False


@dataclass(frozen=True)
class VectorOptions:
    """Sizes of an operation on shared vectors."""

    count: Annotated[int, typer.Option(min=1, help="Results (of argmax: classes in the one row).")]
    bits: Annotated[int, typer.Option(min=2, max=63, help="Width of the input's shares.")] = 16
    out_bits: Annotated[
        int | None,
        typer.Option(min=1, max=63, help="Width of the result's shares, of all but maxpool, argmax and compare."),
    ] = None
    second_bits: Annotated[
        int | None, typer.Option(min=1, max=63, help="Width of the second factor's shares, of multiply.")
    ] = None
    window: Annotated[int, typer.Option(min=1, help="Values per window, of maxpool.")] = 4
    drop: Annotated[int, typer.Option(min=1, max=62, help="Low bits dropped, of truncate.")] = 8
    saturate: Annotated[bool, typer.Option("--saturate", help="Clip to --activation-bits, of relu.")] = False
    non_negative: Annotated[bool, typer.Option("--non-negative", help="Sign known: extend, truncate, multiply.")] = (
        False
    )
    radix: Radix = None

    def operation(self, name: str, activation_bits: int) -> dict[str, Any]:
        """The operation `name` as the core reads it."""
        cap = min(activation_bits, self.bits - 2) if self.saturate else None
        digits = {} if self.radix is None or name == "lookup" else {"radix": self.radix}
        out_bits, non_negative = self.out_bits, self.non_negative
        chosen: dict[str, dict[str, Any]] = {
            "relu": {"out_bits": out_bits, "saturate": cap},
            "maxpool": {"window": self.window},
            "argmax": {},
            "truncate": {"drop": self.drop, "out_bits": out_bits, "non_negative": non_negative},
            "extend": {"out_bits": 2 * self.bits if out_bits is None else out_bits, "non_negative": non_negative},
            "compare": {},
            "lookup": {"out_bits": out_bits},
            "multiply": {"second_bits": self.second_bits, "out_bits": out_bits, "non_negative": non_negative},
        }
        return {"operation": name, "count": self.count, "bits": self.bits, **chosen[name], **digits}


@dataclass(frozen=True)
class RowFunction:
    """A function of transformers on the rows of a matrix, and the widths that are usual for it."""

    name: str
    bits: int
    out_bits: int
    bound: float


@dataclass(frozen=True)
class RootOptions:
    """How suite comet takes inverse square roots."""

    start: Annotated[Start, typer.Option(help="Where Newton's iteration begins, of comet.")] = "affine"
    roots: Annotated[
        Roots, typer.Option(help="Of comet's softmax and norm: one a row, or for each element as published.")
    ] = "row"
    accept_leakage: AcceptLeakage = False

    def applied(self, operation: dict[str, Any], suite: Suite) -> dict[str, Any]:
        """An operation under `suite`. Raises `MisuseError` for options of comet under another suite."""
        if suite is Suite.COMET:
            name = operation["operation"]
            roots = {"start": self.start, "accept_leakage": self.accept_leakage, "of_elements": self.roots == "element"}
            return {**operation, "operation": "comet", "function": name, **roots}
        if (self.start, self.roots) != ("affine", "row"):
            raise MisuseError("only suite comet has a --start and --roots")
        return operation


@dataclass(frozen=True)
class MeasureRowOptions(MeasureOptions):
    """Conditions of a function of transformers."""

    suite: Annotated[Suite, typer.Option(help="auto: by tables; comet: by one inverse square root.")] = Suite.AUTO


@dataclass(frozen=True)
class ConvolutionOptions:
    """Geometry of a convolution, and how suite ufo runs it."""

    height: Size
    width: Size
    in_channels: Annotated[int, typer.Option("--in", min=1, help="Channels of the input.")]
    out_channels: Annotated[int, typer.Option("--out", min=1, help="Channels of the output.")]
    kernel: Annotated[int, typer.Option(min=1, help="Rows and columns of the kernel.")] = 3
    stride: Size = 1
    padding: Annotated[int, typer.Option(min=0, help="Zeros on each side.")] = 0
    dilation: Annotated[int, typer.Option(min=1, help="Rows and columns between two taps of the kernel.")] = 1
    groups: Annotated[int, typer.Option(min=1, help="Groups of channels that do not mix; all: depthwise.")] = 1
    tile: Annotated[
        int | None, typer.Option(min=2, max=4, help="Rows and columns of a tile of results, 2 or 4, of suite ufo.")
    ] = None
    baseline: Annotated[
        Literal["winograd", "uniform"] | None,
        typer.Option(help="What suite ufo is compared with: tiles with every extension apart, or no tiles."),
    ] = None

    def operation(self) -> dict[str, Any]:
        """The convolution as the core reads it, without widths."""
        image = {"height": self.height, "width": self.width, "input": self.in_channels, "output": self.out_channels}
        window = {"kernel": self.kernel, "stride": self.stride, "padding": self.padding}
        window |= {"dilation": self.dilation, "groups": self.groups}
        tiles = {"tile": self.tile, "baseline": self.baseline}
        chosen = {name: value for name, value in tiles.items() if value is not None}
        return {"operation": "conv", **image, **window, **chosen}


def measure(operation: dict[str, Any], options: MeasureOptions, ot: str = "auto", offline: bool = False) -> None:
    """Run a bench and print it."""
    suite = options.suite
    _core.check_suite(suite, accept_leakage=False)
    if suite is Suite.LOLA:
        raise MisuseError("suite `lola` has no operations of its own; measure a whole model: bench model X.tacit")
    if suite is not Suite.AUTO and operation["operation"] in LINEAR:
        operation = {**operation, "suite": str(suite)}
    if suite is Suite.FALCON_NTT and operation["operation"] in CIRCUITS:
        operation = {**operation, "nonlinear": "gc"}
    with terminal.progress("measuring") as advance:
        content = bench_operation(options.pair(operation, ot, offline), options.repeat, advance)
    show(content, options.json)


def show(content: dict[str, Any], json: bool) -> None:
    """Print what was measured."""
    if json:
        terminal.emit_json(content)
    else:
        terminal.show_run(content)


def non_linear(name: str, what: str) -> None:
    """Add the command of an operation on shared vectors."""

    def command(vector: VectorOptions, widths: LayerWidths, measured: MeasureOptions, ot: Transfers = "auto") -> None:
        measure(vector.operation(name, widths.activation_bits), measured, ot)

    command.__doc__ = f"{what}\n\n{ON_SHARES}"
    example = 8 if name == "lookup" else 12
    bench.command(name, epilog=f"Example: `tacit bench {name} --count 1000 --bits {example}`")(expand(command))


non_linear("relu", "Measure ReLU, with --out-bits extended and with --saturate clipped on the way.")
non_linear("maxpool", "Measure maxima of --count windows.")
non_linear("argmax", "Measure the position of the largest of --count values.")
non_linear("truncate", "Measure exact truncation by --drop bits, extended where --out-bits are more than are left.")
non_linear("extend", "Measure extension of shares to --out-bits.")
non_linear("compare", "Measure comparison of private integers; the results stay shared by exclusive or.")
non_linear("lookup", "Measure a function of at most 8 --bits, by a table of --out-bits wide entries.")
non_linear("multiply", "Measure products of shared values of --bits and --second-bits, mod 2^--out-bits.")


def of_rows(function: RowFunction, what: str, sizes: str) -> None:
    """Add the command of a function of transformers on a shared matrix."""

    def command(
        measured: MeasureRowOptions,
        root: RootOptions,
        rows: Annotated[int, typer.Option(min=1, help="Rows of the matrix.")],
        cols: Annotated[int, typer.Option(min=1, help="Its columns.")],
        bits: Annotated[int, typer.Option(min=2, max=63, help="Width of the input's shares.")] = function.bits,
        out_bits: Annotated[int, typer.Option(min=2, max=63, help="Width of the results.")] = function.out_bits,
        range_: Annotated[float, typer.Option("--range", help="Largest absolute value that counts.")] = function.bound,
        radix: Radix = None,
        ot: Transfers = "auto",
    ) -> None:
        digits = {} if radix is None else {"radix": radix}
        widths = {"bits": bits, "out_bits": out_bits, "range": range_}
        operation = {"operation": function.name, "rows": rows, "cols": cols, **widths, **digits}
        measure(root.applied(operation, measured.suite), measured, ot)

    command.__doc__ = f"{what}\n\n{ON_SHARES}"
    bench.command(function.name, epilog=f"Example: `tacit bench {function.name} {sizes}`")(expand(command))


of_rows(
    RowFunction("gelu", 12, 8, 8.0),
    "Measure GELU of multiples of --range / 2^(--out-bits - 1).",
    "--rows 128 --cols 3072",
)
of_rows(RowFunction("softmax", 9, 8, 16.0), "Measure softmax of the rows of a matrix.", "--rows 1536 --cols 128")
of_rows(RowFunction("layernorm", 9, 19, 32.0), "Measure layer norm of the rows of a matrix.", "--rows 128 --cols 768")


def conv(
    convolution: ConvolutionOptions,
    widths: LayerWidths,
    measured: MeasureOptions,
    correlations: Correlations,
) -> None:
    """Measure a convolution with rescale, random weights.

    Two processes over TLS; the result is compared with the interpreter after the measurement. Suite ufo measures the
    exact accumulators of activations that are not negative, with weights in the Winograd domain for 3x3 and stride 1.
    """
    if measured.suite is not Suite.UFO and (convolution.tile is not None or convolution.baseline is not None):
        raise MisuseError("only suite ufo has a --tile and a --baseline")
    operation = {**convolution.operation(), **widths.fields()}
    measure(operation, measured, correlations.ot, correlations.offline)


def matmul(
    widths: LayerWidths,
    measured: MeasureOptions,
    correlations: Correlations,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the client's matrix.")],
    inner: Annotated[int, typer.Option(min=1, help="Its columns.")],
    cols: Annotated[int, typer.Option(min=1, help="Columns of the server's matrix.")],
) -> None:
    """Measure a matrix product with rescale, random weights.

    Two processes over TLS; the result is compared with the interpreter after the measurement.
    """
    operation = {"operation": "matmul", "rows": rows, "inner": inner, "cols": cols, **widths.fields()}
    measure(operation, measured, correlations.ot, correlations.offline)


def ot(
    widths: LayerWidths,
    measured: MeasureOptions,
    count: Annotated[int, typer.Option(min=1, help="Correlated transfers, from the server to the client.")],
    kind: Annotated[
        Literal["ferret", "softspoken2", "softspoken4", "softspoken8"], typer.Option(help="How they are made.")
    ] = "softspoken4",
) -> None:
    """Measure the making of oblivious transfers.

    Two processes over TLS; a sample of the transfers is opened and checked after the measurement.
    """
    del widths  # of conv and matmul only
    measure({"operation": "ot", "kind": kind, "count": count}, measured)


@dataclass(frozen=True)
class ModelPairOptions(PlannedPairOptions):
    """The options of a pair that is measured: one thread unless more are wanted."""

    threads: Threads = 1


def model(
    model: ModelFile,
    options: ModelPairOptions,
    inputs: Annotated[Path | None, typer.Option("--input", metavar="IN.npy", help="Default: a random batch.")] = None,
    repeat: Repeat = 3,
    json: AsJson = False,
) -> None:
    """Measure private predictions with a model: two processes over TLS on loopback, or on --network."""
    compiled = Model(model)
    examples = (
        random_examples(compiled, options.batch)
        if inputs is None
        else load(inputs, compiled.input_shape, compiled.preprocessing)
    )
    with terminal.progress("measuring") as advance:
        content = bench_model(options.planned(compiled), examples, repeat, advance)
    show(content, json)


for name, command, arguments in (
    ("conv", conv, "--height 16 --width 16 --in 16 --out 16"),
    ("matmul", matmul, "--rows 1 --inner 512 --cols 1000"),
    ("ot", ot, "--kind ferret --count 30000000"),
    ("model", model, "mnist.tacit --threads 1 --repeat 5"),
):
    bench.command(name, epilog=f"Example: `tacit bench {name} {arguments}`")(expand(command))
