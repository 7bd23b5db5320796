"""`tacit bench`: one command per operation, two processes over TLS each."""

from typing import Annotated, Any, Literal

import typer

from tacit import _core, report
from tacit.client import TIMEOUT_SECONDS
from tacit.errors import MisuseError
from tacit.operation import OperationPair, bench_operation
from tacit.options import AcceptLeakage, AsJson, Network, Suite, Threads, Timeout, Transfers

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
Prepared = Annotated[bool, typer.Option("--offline", help="Run the layer on a mask before the input exists.")]
RoundingOption = Annotated[
    Literal["stochastic", "exact"], typer.Option(help="How linear layers rescale; the other operations are exact.")
]


def measure(
    operation: dict[str, Any],
    suite: Suite,
    repeat: int,
    threads: int | None,
    timeout: float,
    link: str | None,
    json: bool,
    ot: str = "auto",
    offline: bool = False,
) -> None:
    """Run a bench and print it."""
    _core.check_suite(suite, accept_leakage=False)
    if suite is Suite.LOLA:
        raise MisuseError("suite `lola` has no operations of its own; measure a whole model: bench model X.tacit")
    if suite is not Suite.AUTO and operation["operation"] in LINEAR:
        operation = {**operation, "suite": str(suite)}
    if suite is Suite.FALCON_NTT and operation["operation"] in CIRCUITS:
        operation = {**operation, "nonlinear": "gc"}
    pair = OperationPair(operation, threads, timeout, link, ot, offline)
    with report.progress("measuring") as advance:
        content = bench_operation(pair, repeat, advance)
    if json:
        report.emit_json(content)
    else:
        report.show_run(content)


def non_linear(name: str, what: str) -> None:
    """Add the command of an operation on shared vectors."""

    def command(
        count: Annotated[int, typer.Option(min=1, help="Results (of argmax: classes in the one row).")],
        bits: Annotated[int, typer.Option(min=2, max=63, help="Width of the input's shares.")] = 16,
        out_bits: Annotated[
            int | None,
            typer.Option(min=1, max=63, help="Width of the result's shares, of all but maxpool, argmax and compare."),
        ] = None,
        second_bits: Annotated[
            int | None, typer.Option(min=1, max=63, help="Width of the second factor's shares, of multiply.")
        ] = None,
        window: Annotated[int, typer.Option(min=1, help="Values per window, of maxpool.")] = 4,
        drop: Annotated[int, typer.Option(min=1, max=62, help="Low bits dropped, of truncate.")] = 8,
        saturate: Annotated[bool, typer.Option("--saturate", help="Clip to --activation-bits, of relu.")] = False,
        non_negative: Annotated[
            bool, typer.Option("--non-negative", help="Sign known: extend, truncate, multiply.")
        ] = False,
        radix: Annotated[
            int | None, typer.Option(min=1, max=8, help="Bits of a comparison's digits; else as in the suite.")
        ] = None,
        weight_bits: WeightBits = 8,
        activation_bits: ActivationBits = 8,
        suite: SuiteOption = Suite.AUTO,
        network: Network = None,
        ot: Transfers = "auto",
        threads: Threads = 1,
        rounding: RoundingOption = "stochastic",
        repeat: Repeat = 3,
        timeout: Timeout = TIMEOUT_SECONDS,
        json: AsJson = False,
    ) -> None:
        del weight_bits, rounding  # of conv and matmul only
        cap = min(activation_bits, bits - 2) if saturate else None
        digits = {} if radix is None or name == "lookup" else {"radix": radix}
        chosen: dict[str, dict[str, Any]] = {
            "relu": {"out_bits": out_bits, "saturate": cap},
            "maxpool": {"window": window},
            "argmax": {},
            "truncate": {"drop": drop, "out_bits": out_bits, "non_negative": non_negative},
            "extend": {"out_bits": 2 * bits if out_bits is None else out_bits, "non_negative": non_negative},
            "compare": {},
            "lookup": {"out_bits": out_bits},
            "multiply": {"second_bits": second_bits, "out_bits": out_bits, "non_negative": non_negative},
        }
        operation = {"operation": name, "count": count, "bits": bits, **chosen[name], **digits}
        measure(operation, suite, repeat, threads, timeout, network, json, ot)

    command.__doc__ = f"{what}\n\nTwo processes over TLS on random shares; the result is checked after the measurement."
    example = 8 if name == "lookup" else 12
    bench.command(name, epilog=f"Example: `tacit bench {name} --count 1000 --bits {example}`")(command)


non_linear("relu", "Measure ReLU, with --out-bits extended and with --saturate clipped on the way.")
non_linear("maxpool", "Measure maxima of --count windows.")
non_linear("argmax", "Measure the position of the largest of --count values.")
non_linear("truncate", "Measure exact truncation by --drop bits, extended where --out-bits are more than are left.")
non_linear("extend", "Measure extension of shares to --out-bits.")
non_linear("compare", "Measure comparison of private integers; the results stay shared by exclusive or.")
non_linear("lookup", "Measure a function of at most 8 --bits, by a table of --out-bits wide entries.")
non_linear("multiply", "Measure products of shared values of --bits and --second-bits, mod 2^--out-bits.")


def of_rows(name: str, what: str, sizes: str, width: int, out_width: int, bound: float) -> None:
    """Add the command of a function of transformers on a shared matrix."""

    def command(
        rows: Annotated[int, typer.Option(min=1, help="Rows of the matrix.")],
        cols: Annotated[int, typer.Option(min=1, help="Its columns.")],
        bits: Annotated[int, typer.Option(min=2, max=63, help="Width of the input's shares.")] = width,
        out_bits: Annotated[int, typer.Option(min=2, max=63, help="Width of the results.")] = out_width,
        range_: Annotated[float, typer.Option("--range", help="Largest absolute value that counts.")] = bound,
        radix: Annotated[
            int | None, typer.Option(min=1, max=8, help="Bits of a comparison's digits; else as in the suite.")
        ] = None,
        network: Network = None,
        ot: Transfers = "auto",
        threads: Threads = 1,
        repeat: Repeat = 3,
        timeout: Timeout = TIMEOUT_SECONDS,
        json: AsJson = False,
        suite: Annotated[Suite, typer.Option(help="auto: by tables; comet: by one inverse square root.")] = Suite.AUTO,
        start: Annotated[Start, typer.Option(help="Where Newton's iteration begins, of comet.")] = "affine",
        roots: Annotated[
            Roots, typer.Option(help="Of comet's softmax and norm: one a row, or for each element as published.")
        ] = "row",
        accept_leakage: AcceptLeakage = False,
    ) -> None:
        digits = {} if radix is None else {"radix": radix}
        widths = {"bits": bits, "out_bits": out_bits, "range": range_}
        operation = {"operation": name, "rows": rows, "cols": cols, **widths, **digits}
        if suite is Suite.COMET:
            operation |= {"operation": "comet", "function": name, "start": start, "accept_leakage": accept_leakage}
            operation["of_elements"] = roots == "element"
        elif (start, roots) != ("affine", "row"):
            raise MisuseError("only suite comet has a --start and --roots")
        measure(operation, suite, repeat, threads, timeout, network, json, ot)

    command.__doc__ = f"{what}\n\nTwo processes over TLS on random shares; the result is checked after the measurement."
    bench.command(name, epilog=f"Example: `tacit bench {name} {sizes}`")(command)


of_rows("gelu", "Measure GELU of multiples of --range / 2^(--out-bits - 1).", "--rows 128 --cols 3072", 12, 8, 8.0)
of_rows("softmax", "Measure softmax of the rows of a matrix.", "--rows 1536 --cols 128", 9, 8, 16.0)
of_rows("layernorm", "Measure layer norm of the rows of a matrix.", "--rows 128 --cols 768", 9, 19, 32.0)


@bench.command(epilog="Example: `tacit bench conv --height 16 --width 16 --in 16 --out 16`")
def conv(
    height: Size,
    width: Size,
    in_channels: Annotated[int, typer.Option("--in", min=1, help="Channels of the input.")],
    out_channels: Annotated[int, typer.Option("--out", min=1, help="Channels of the output.")],
    kernel: Annotated[int, typer.Option(min=1, help="Rows and columns of the kernel.")] = 3,
    stride: Size = 1,
    padding: Annotated[int, typer.Option(min=0, help="Zeros on each side.")] = 0,
    dilation: Annotated[int, typer.Option(min=1, help="Rows and columns between two taps of the kernel.")] = 1,
    groups: Annotated[int, typer.Option(min=1, help="Groups of channels that do not mix; all: depthwise.")] = 1,
    weight_bits: WeightBits = 8,
    activation_bits: ActivationBits = 8,
    suite: SuiteOption = Suite.AUTO,
    network: Network = None,
    ot: Transfers = "auto",
    threads: Threads = 1,
    rounding: RoundingOption = "stochastic",
    tile: Annotated[
        int | None, typer.Option(min=2, max=4, help="Rows and columns of a tile of results, 2 or 4, of suite ufo.")
    ] = None,
    baseline: Annotated[
        Literal["winograd", "uniform"] | None,
        typer.Option(help="What suite ufo is compared with: tiles with every extension apart, or no tiles."),
    ] = None,
    offline: Prepared = False,
    repeat: Repeat = 3,
    timeout: Timeout = TIMEOUT_SECONDS,
    json: AsJson = False,
) -> None:
    """Measure a convolution with rescale, random weights.

    Two processes over TLS; the result is compared with the interpreter after the measurement. Suite ufo measures the
    exact accumulators of activations that are not negative, with weights in the Winograd domain for 3x3 and stride 1.
    """
    if suite is not Suite.UFO and (tile is not None or baseline is not None):
        raise MisuseError("only suite ufo has a --tile and a --baseline")
    image = {"height": height, "width": width, "input": in_channels, "output": out_channels}
    window = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    widths = {"weight_bits": weight_bits, "activation_bits": activation_bits, "rounding": rounding}
    chosen = {name: value for name, value in (("tile", tile), ("baseline", baseline)) if value is not None}
    operation = {"operation": "conv", **image, **window, **widths, **chosen}
    measure(operation, suite, repeat, threads, timeout, network, json, ot, offline)


@bench.command(epilog="Example: `tacit bench matmul --rows 1 --inner 512 --cols 1000`")
def matmul(
    rows: Annotated[int, typer.Option(min=1, help="Rows of the client's matrix.")],
    inner: Annotated[int, typer.Option(min=1, help="Its columns.")],
    cols: Annotated[int, typer.Option(min=1, help="Columns of the server's matrix.")],
    weight_bits: WeightBits = 8,
    activation_bits: ActivationBits = 8,
    suite: SuiteOption = Suite.AUTO,
    network: Network = None,
    ot: Transfers = "auto",
    threads: Threads = 1,
    rounding: RoundingOption = "stochastic",
    offline: Prepared = False,
    repeat: Repeat = 3,
    timeout: Timeout = TIMEOUT_SECONDS,
    json: AsJson = False,
) -> None:
    """Measure a matrix product with rescale, random weights.

    Two processes over TLS; the result is compared with the interpreter after the measurement.
    """
    sizes = {"rows": rows, "inner": inner, "cols": cols}
    widths = {"weight_bits": weight_bits, "activation_bits": activation_bits, "rounding": rounding}
    measure({"operation": "matmul", **sizes, **widths}, suite, repeat, threads, timeout, network, json, ot, offline)


@bench.command(epilog="Example: `tacit bench ot --kind ferret --count 30000000`")
def ot(
    count: Annotated[int, typer.Option(min=1, help="Correlated transfers, from the server to the client.")],
    kind: Annotated[
        Literal["ferret", "softspoken2", "softspoken4", "softspoken8"], typer.Option(help="How they are made.")
    ] = "softspoken4",
    weight_bits: WeightBits = 8,
    activation_bits: ActivationBits = 8,
    suite: SuiteOption = Suite.AUTO,
    network: Network = None,
    threads: Threads = 1,
    rounding: RoundingOption = "stochastic",
    repeat: Repeat = 3,
    timeout: Timeout = TIMEOUT_SECONDS,
    json: AsJson = False,
) -> None:
    """Measure the making of oblivious transfers.

    Two processes over TLS; a sample of the transfers is opened and checked after the measurement.
    """
    del weight_bits, activation_bits, rounding  # of conv and matmul only
    measure({"operation": "ot", "kind": kind, "count": count}, suite, repeat, threads, timeout, network, json)
