"""Options of `tacit bench`: conditions of a measurement, and sizes of the operations."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from tacit.cli.options import AcceptLeakage, AsJson, Network, PostQuantum, Suite, Threads, Timeout, Transfers
from tacit.cli.pair import PlannedPairOptions
from tacit.errors import MisuseError
from tacit.measure.operation import OperationPair
from tacit.session.client import TIMEOUT_SECONDS

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


@dataclass(frozen=True)
class MeasureOptions:
    """How often and under what conditions an operation is measured."""

    suite: SuiteOption = Suite.AUTO
    network: Network = None
    threads: Threads = 1
    repeat: Repeat = 3
    timeout: Timeout = TIMEOUT_SECONDS
    post_quantum: PostQuantum = False
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
            post_quantum=self.post_quantum,
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


FOLDINGS = 8
"""Places of foldings: one to four levels at 2048 coefficients, and the same at 4096."""
Folded = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=FOLDINGS,
        help="Several polynomials of the input in one ciphertext, which takes fewer bytes and more work: folded1 to "
        "folded8 of a plan. Of suite auto; keys for it are part of the setup.",
    ),
]


def folding(place: int | None, suite: Suite) -> dict[str, int]:
    """The option --folded as the core reads it. Raises `MisuseError` for another suite than auto."""
    if place is not None and suite is not Suite.AUTO:
        raise MisuseError("only suite auto has --folded")
    return {} if place is None else {"folded": place}


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


@dataclass(frozen=True)
class ModelPairOptions(PlannedPairOptions):
    """The options of a pair that is measured: one thread unless more are wanted."""

    threads: Threads = 1
