"""`tacit bench`: one command per operation, two processes over TLS each."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tacit import _core
from tacit.cli.bench_options import (
    ConvolutionOptions,
    Correlations,
    Folded,
    LayerWidths,
    MeasureOptions,
    MeasureRowOptions,
    ModelPairOptions,
    Radix,
    Repeat,
    RootOptions,
    RowFunction,
    VectorOptions,
    folding,
)
from tacit.cli.expand import expand
from tacit.cli.options import AsJson, ModelFile, Network, Suite, Transfers
from tacit.cli.writing import LEARNT, planned_for_link
from tacit.data.examples import load
from tacit.errors import MisuseError
from tacit.fleet.simulation import prices
from tacit.measure.bench import bench_model, random_examples
from tacit.measure.decoder import bench_decoder
from tacit.measure.operation import bench_operation
from tacit.measure.throughput import Load, bench_throughput
from tacit.model import Model
from tacit.report import terminal

bench = typer.Typer(help="Measure costs on this machine.", no_args_is_help=True, rich_markup_mode="markdown")

LINEAR = ("conv", "matmul")
CIRCUITS = ("relu", "maxpool", "argmax", "truncate", "extend")
ON_SHARES = "Two processes over TLS on random shares; the result is checked after the measurement."


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
    folded: Folded = None,
) -> None:
    """Measure a convolution with rescale, random weights.

    Two processes over TLS; the result is compared with the interpreter after the measurement. Suite ufo measures the
    exact accumulators of activations that are not negative, with weights in the Winograd domain for 3x3 and stride 1.
    """
    if measured.suite is not Suite.UFO and (convolution.tile is not None or convolution.baseline is not None):
        raise MisuseError("only suite ufo has a --tile and a --baseline")
    operation = {**convolution.operation(), **widths.fields(), **folding(folded, measured.suite)}
    measure(operation, measured, correlations.ot, correlations.offline)


def matmul(
    widths: LayerWidths,
    measured: MeasureOptions,
    correlations: Correlations,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the client's matrix.")],
    inner: Annotated[int, typer.Option(min=1, help="Its columns.")],
    cols: Annotated[int, typer.Option(min=1, help="Columns of the server's matrix.")],
    folded: Folded = None,
) -> None:
    """Measure a matrix product with rescale, random weights.

    Two processes over TLS; the result is compared with the interpreter after the measurement.
    """
    sizes = {"rows": rows, "inner": inner, "cols": cols}
    operation = {"operation": "matmul", **sizes, **widths.fields(), **folding(folded, measured.suite)}
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
        random_examples(compiled, options.batch or 1)
        if inputs is None
        else load(inputs, compiled.input_shape, compiled.preprocessing)
    )
    with terminal.progress("measuring") as advance:
        content = bench_model(options.planned(compiled), examples, repeat, advance)
    show(content, json)


def throughput(
    model: ModelFile,
    clients: Annotated[int, typer.Option(min=1, max=256, help="Sessions at the same time.")] = 4,
    seconds: Annotated[float, typer.Option(min=0.1, max=86400, help="How long clients begin new sessions.")] = 30.0,
    inputs: Annotated[int, typer.Option(min=1, max=10000, help="Inputs of each session, drawn at random.")] = 1,
    network: Network = None,
    core_hour: Annotated[float, typer.Option(min=0, metavar="DOLLARS", help="Price of a core and an hour.")] = (
        prices.CORE_HOUR
    ),
    egress_gb: Annotated[
        float, typer.Option(min=0, metavar="DOLLARS", help="Price of 10^9 bytes that leave the server.")
    ] = prices.EGRESS_GB,
    json: AsJson = False,
) -> None:
    """Measure how many predictions a server answers an hour, and what 1,000 of them cost.

    One `tacit serve` process and clients that begin a session as soon as their last one has ended, over TLS on this
    machine, whose cores they share. Every session is that of a new client. Predictions of a core and an hour count the
    server's processor time alone: that is what a machine of its own would answer.
    """
    with terminal.progress("measuring") as advance:
        load = Load(clients, seconds, network)
        dollars = prices.Prices(core_hour, egress_gb)
        content = bench_throughput(model, random_examples(Model(model), inputs), load, dollars, advance)
    if json:
        terminal.emit_json(content)
    else:
        terminal.show_throughput(content)


def decoder(
    model: ModelFile,
    options: ModelPairOptions,
    tokens: Annotated[int, typer.Option(min=1, max=4096, help="Steps of each kind, behind a first one.")] = 8,
    context: Annotated[int | None, typer.Option(min=1, help="The context that the model must have.")] = None,
    json: AsJson = False,
) -> None:
    """Measure a token of a language model that was compiled with --context: two processes over TLS.

    The client learns the best next token and nothing else. Bytes and rounds of a step do not depend on the tokens.
    Layers run as is soonest done in a local network, or on --network. What is prepared for several tokens together is
    counted with the first one, and in the mean over many tokens, which is planned.
    """
    pair = planned_for_link(replace(options, reveal=LEARNT).planned(Model(model)))
    with terminal.progress("measuring") as advance:
        content = bench_decoder(pair, context, tokens, advance)
    if json:
        terminal.emit_json(content)
        return
    for of, field in (("a prompt", "per_prompt_token"), ("an answer", "per_token")):
        each = content[field]
        shown = f"{each['seconds']:.2f} s, {each['bytes'] / 1e6:.1f} MB and {each['rounds']:.0f} rounds"
        typer.echo(f"context {content['context']}, {tokens} tokens of {of}, each {shown}")
    if (passed := content.get("per_pass")) is not None:
        shown = f"{passed['seconds']:.1f} s, {passed['bytes'] / 1e6:.0f} MB and {passed['rounds']:.0f} rounds"
        typer.echo(f"{content['pass']} tokens of a prompt at once {shown}")
        drafted = content["per_drafted_pass"]
        shown = f"{drafted['seconds']:.1f} s, {drafted['bytes'] / 1e6:.0f} MB and {drafted['rounds']:.0f} rounds"
        typer.echo(f"{content['pass']} tokens with a draft {shown}")
    mean = content["planned"]["mean_per_token"]
    shown = f"{mean['bytes'] / 1e6:.1f} MB and {mean['rounds']:.0f} rounds"
    typer.echo(f"with what is prepared for several tokens together, each of an answer {shown}")


for name, command, arguments in (
    ("conv", conv, "--height 16 --width 16 --in 16 --out 16"),
    ("matmul", matmul, "--rows 1 --inner 512 --cols 1000"),
    ("ot", ot, "--kind ferret --count 30000000"),
    ("model", model, "mnist.tacit --threads 1 --repeat 5"),
    ("decoder", decoder, "smollm2.tacit --context 128 --tokens 8 --json"),
    ("throughput", throughput, "mnist.tacit --clients 8 --seconds 60"),
):
    bench.command(name, epilog=f"Example: `tacit bench {name} {arguments}`")(expand(command))
