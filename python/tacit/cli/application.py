"""The `tacit` command. Results go to standard output, progress and errors to standard error."""

import sys
import traceback
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from typer.exceptions import Abort, Exit, TyperException

from tacit import __version__, report, text_demo, text_report
from tacit.bench import bench_model, random_examples
from tacit.bench_cli import Repeat, bench
from tacit.client import CONNECT_SECONDS, SESSION_SECONDS, TIMEOUT_SECONDS, Client, Prediction, classes
from tacit.compile_cli import compile_command
from tacit.data import load
from tacit.demo import prepare, run_demo
from tacit.errors import TacitError, failure
from tacit.evaluate_cli import evaluate_command
from tacit.inputs import Inputs, read
from tacit.letters_cli import decrypt_command, encrypt_command, keys_command
from tacit.letters_cli import evaluate_command as evaluate_letter
from tacit.model import Model
from tacit.options import (
    AcceptLeakage,
    AsJson,
    Batch,
    ConnectTimeout,
    InputFiles,
    MaxInputs,
    ModelFile,
    Network,
    Offline,
    Preprocess,
    Protocols,
    RevealTo,
    SessionTimeout,
    Texts,
    Threads,
    Timeout,
    Tokenizer,
    Transfers,
)
from tacit.pair import Pair
from tacit.plan_cli import calibrate_command, plan_command
from tacit.preprocess import parse as parse_preprocessing
from tacit.report_cli import report_command
from tacit.reproduce_cli import reproduce_command
from tacit.server import Listening, Server
from tacit.square_cli import square_command
from tacit.text import Text
from tacit.text import read as read_text
from tacit.train_cli import train

app = typer.Typer(
    help="Private neural-network inference between two parties.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)
app.add_typer(bench, name="bench")
app.add_typer(train, name="train")


def example(command: str) -> str:
    """The last line of a command's help."""
    return f"Example: `tacit {command}`"


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"tacit {__version__}")
        raise Exit


@app.callback()
def root(
    _version: Annotated[bool, typer.Option("--version", callback=show_version, is_eager=True, help="Version.")] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Private neural-network inference between two parties.

    A server holds the weights, a client holds an input. The client learns the result, the server
    learns nothing, and neither learns the other's data.
    """


app.command("compile", epilog=example("compile mnist.onnx -o mnist.tacit --calibrate train.npz"))(compile_command)


train.command("square", epilog="Example: `tacit train square mnist.onnx --data train.npz -o square.onnx`")(
    square_command
)


app.command("reproduce", epilog=example("reproduce gala-operations"))(reproduce_command)


app.command("report", epilog=example("report run.json -o report.html"))(report_command)


app.command("keys", epilog=example("keys mnist.plan -o alice"))(keys_command)


app.command("encrypt", epilog=example("encrypt mnist.plan digits.npy --keys alice -o request.bin"))(encrypt_command)


app.command(
    "evaluate-encrypted",
    epilog=example("evaluate-encrypted mnist.tacit request.bin --keys alice.keys -o answer.bin"),
)(evaluate_letter)


app.command("decrypt", epilog=example("decrypt mnist.plan answer.bin --keys alice"))(decrypt_command)


app.command("plan", epilog=example("plan mnist.tacit --network wan"))(plan_command)


app.command("calibrate", epilog=example("calibrate"))(calibrate_command)


@app.command(epilog=example("simulate mnist.tacit digits.npy"))
def simulate(model: ModelFile, inputs: InputFiles = None, text: Texts = None, json: AsJson = False) -> None:
    """Run the integer interpreter in the clear: the result a private run must give."""
    compiled = Model(model)
    given = read(inputs or [], text, compiled.input_shape, compiled.preprocessing, compiled.text)
    with report.progress("simulating") as advance:
        outputs = compiled.simulate(given.x, advance)
    values = np.multiply(outputs, compiled.output_scale, dtype=np.float64)
    labels = classes(outputs)
    if json:
        content = {"model": str(model), "inputs": len(given.x), "output": labels.tolist()}
        content |= {"logits": outputs.tolist(), "output_scale": compiled.output_scale}
        report.emit_json({**content, **text_report.content(compiled.text, given, values)})
        return
    show_results(given, compiled.text, labels, values, compiled.description.get("labels", []))


def show_results(
    given: Inputs,
    text: Text | None,
    labels: NDArray[np.int64],
    values: NDArray[np.float64] | None,
    names: list[str],
    probabilities: NDArray[np.float64] | None = None,
) -> None:
    """Embeddings of texts where the outputs (N, outputs) are that, else the best classes of each input."""
    embeddings = None if text is None or values is None else text.embeddings(values, given.x)
    if text is None or embeddings is None:
        report.show_results(given.names, labels, values, names, probabilities)
    else:
        text_report.show(text, given, embeddings)


@app.command(epilog=example("serve mnist.tacit --listen 127.0.0.1:7000"))
def serve(
    model: ModelFile,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address; port 0 picks a free one.")],
    reveal: RevealTo = "output",
    ot: Transfers = "auto",
    offline: Offline = 0,
    batch: Batch = 1,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM). Default: a fresh key.")] = None,
    key: Annotated[Path | None, typer.Option(help="Private key of --certificate (PEM).")] = None,
    client_ca: Annotated[Path | None, typer.Option(help="Admit only clients this authority (PEM) vouches for.")] = None,
    plaintext: Annotated[bool, typer.Option("--plaintext", help="No TLS; loopback only.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Stop after one session.")] = False,
    timeout: Timeout = TIMEOUT_SECONDS,
    connect_timeout: ConnectTimeout = CONNECT_SECONDS,
    session_timeout: SessionTimeout = SESSION_SECONDS,
    threads: Threads = None,
    network: Network = None,
    max_inputs: MaxInputs = None,
    key_cache: Annotated[
        int | None,
        typer.Option(min=0, metavar="MB", help="Of lola: memory for keys of clients who may come back. [1024]"),
    ] = None,
    accept_leakage: AcceptLeakage = False,
    protocols: Protocols = "auto",
    json: AsJson = False,
) -> None:
    """Answer clients until interrupted.

    Prints the pin of its key: clients pass it to `predict --pin` to know that they talk to this
    server. With --json, one line says where it listens, and one line follows per session. A client
    that is silent for --timeout seconds, needs more than --connect-timeout for the TLS handshake, or
    more than --session-timeout in all, is dropped; the others notice nothing. So is one that asks
    for more than --max-inputs inputs at once; a budget over several sessions is yours to keep. With
    --batch B every run takes B inputs. With --offline K a session first prepares K runs, and one
    more after each run.
    """
    patience = (timeout, connect_timeout, session_timeout)
    limits = (*patience, once, threads, network, max_inputs, ot, offline, batch, accept_leakage, key_cache, protocols)
    listening = Listening(listen, reveal, certificate, key, client_ca, plaintext, *limits)
    server = Server(model, listening)
    try:
        if json:
            report.emit_json({"listening": server.address, "pin": server.pin})
        else:
            report.show_address(server.address, server.pin)
        for session in server.sessions():
            try:
                report.show_session(session, json)
            except OSError as error:  # a full disk under the log is no reason to turn clients away
                report.warn(f"a session's report was not written: {error}")
    except KeyboardInterrupt:
        server.stop()


@app.command(epilog=example("predict --server 10.0.0.2:7000 --pin 4f0c...e1 digits.npy"))
def predict(
    server: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the server listens.")],
    inputs: InputFiles = None,
    text: Texts = None,
    tokenizer: Tokenizer = None,
    pin: Annotated[str | None, typer.Option(help="Pin of the server's key, as `serve` prints it.")] = None,
    ca: Annotated[Path | None, typer.Option(help="Authority (PEM) that vouches for the server.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="Client certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="Private key of --certificate (PEM).")] = None,
    plaintext: Annotated[bool, typer.Option("--plaintext", help="No TLS; loopback only.")] = False,
    preprocess: Preprocess = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="NAME", help="Of lola: NAME.secret and NAME.keys of `tacit keys`. Default: fresh keys."),
    ] = None,
    timeout: Timeout = TIMEOUT_SECONDS,
    connect_timeout: ConnectTimeout = CONNECT_SECONDS,
    session_timeout: SessionTimeout = SESSION_SECONDS,
    threads: Threads = None,
    network: Network = None,
    accept_leakage: AcceptLeakage = False,
    json: AsJson = False,
) -> None:
    """Send an input, encrypted and shared, to a server and print the result.

    The server learns neither the input nor the result. No model file is needed: the client gets
    the public plan, checks it, and shows what it cost. The plan does not say how pictures become
    inputs: --preprocess does. Nor does it say how text does: --tokenizer does, with the file X.text
    that `compile` wrote for clients. Every text fills the model's length, which is all that the server learns of it.
    """
    patience = (timeout, connect_timeout, session_timeout)
    client = Client(server, pin, ca, plaintext, certificate, key, *patience, threads, network, accept_leakage, keys)
    reading = None if tokenizer is None else read_text(tokenizer)
    preprocessing = None if preprocess is None else parse_preprocessing(preprocess)
    given = read(inputs or [], text, None, preprocessing, reading)
    with report.progress("predicting") as advance:
        prediction = client.predict(given.x, advance)
    if json:
        content = {"inputs": len(prediction.outputs), **prediction.report, "output": prediction.classes.tolist()}
        report.emit_json({**content, **logits(prediction), **text_report.content(reading, given, prediction.logits)})
        return
    show_prediction(given, reading, prediction)
    report.console.print(report.layer_table(prediction.report))
    report.console.print(report.phase_table(prediction.report))


def show_prediction(given: Inputs, text: Text | None, prediction: Prediction) -> None:
    """The results of a private run."""
    names = prediction.report.get("labels", [])
    show_results(given, text, prediction.classes, prediction.logits, names, prediction.probabilities)


def logits(prediction: Prediction) -> dict[str, Any]:
    """Integer logits when the server reveals them, null otherwise; probabilities when it reveals those."""
    shown = {"logits": prediction.outputs.tolist() if prediction.reveals_logits else None}
    probabilities = prediction.probabilities
    return shown if probabilities is None else {**shown, "probability": probabilities.tolist()}


@app.command(epilog=example("run mnist.tacit digits.npy"))
def run(
    model: ModelFile,
    inputs: InputFiles = None,
    text: Texts = None,
    reveal: RevealTo = "output",
    ot: Transfers = "auto",
    offline: Offline = 0,
    batch: Batch = 1,
    threads: Threads = None,
    timeout: Timeout = TIMEOUT_SECONDS,
    network: Network = None,
    accept_leakage: AcceptLeakage = False,
    protocols: Protocols = "auto",
    json: AsJson = False,
) -> None:
    """Try a private prediction on this machine: client and server as two processes over TLS.

    Reports bytes, rounds, time and memory of both, and compares the result with `simulate`.
    """
    compiled = Model(model)
    given = read(inputs or [], text, compiled.input_shape, compiled.preprocessing, compiled.text)
    with report.progress("running") as advance:
        pair = Pair(compiled, reveal, threads, timeout, network, ot, offline, batch, accept_leakage, protocols)
        done = pair.run(given.x, given.y, advance)
    if json:
        fields = text_report.content(compiled.text, given, done.prediction.logits)
        report.emit_json({**done.report, **logits(done.prediction), **fields})
        return
    show_prediction(given, compiled.text, done.prediction)
    report.show_run(done.report)


app.command("evaluate", epilog=example("evaluate mnist.tacit test.npz --mode private --limit 100"))(evaluate_command)


@bench.command("model", epilog=example("bench model mnist.tacit --threads 1 --repeat 5"))
def bench_model_command(
    model: ModelFile,
    inputs: Annotated[Path | None, typer.Option("--input", metavar="IN.npy", help="Default: a random batch.")] = None,
    repeat: Repeat = 3,
    reveal: RevealTo = "output",
    ot: Transfers = "auto",
    offline: Offline = 0,
    batch: Batch = 1,
    threads: Threads = 1,
    timeout: Timeout = TIMEOUT_SECONDS,
    network: Network = None,
    accept_leakage: AcceptLeakage = False,
    protocols: Protocols = "auto",
    json: AsJson = False,
) -> None:
    """Measure private predictions with a model: two processes over TLS on loopback, or on --network."""
    compiled = Model(model)
    examples = (
        random_examples(compiled, batch)
        if inputs is None
        else load(inputs, compiled.input_shape, compiled.preprocessing)
    )
    pair = Pair(compiled, reveal, threads, timeout, network, ot, offline, batch, accept_leakage, protocols)
    with report.progress("measuring") as advance:
        content = bench_model(pair, examples, repeat, advance)
    if json:
        report.emit_json(content)
    else:
        report.show_run(content)


@app.command(epilog=example("demo"))
def demo(
    folder: Annotated[Path, typer.Option(help="Where to leave mnist.tacit and mnist_test.npz.")] = Path("build"),
    mnist: Annotated[Path | None, typer.Option(metavar="mnist.npz", help="The full data set, if you have it.")] = None,
    only_build: Annotated[bool, typer.Option("--only-build", help="Leave the two files and stop.")] = False,
    json: AsJson = False,
) -> None:
    """Classify ten handwritten digits with a server that never sees them, and show the cost."""
    model = prepare(folder, mnist)
    content = {"model": str(model.path)}
    if not only_build:
        content = run_demo(model, Console(stderr=True) if json else report.console)
    if json:
        report.emit_json(content)


@app.command("demo-text", epilog=example("demo-text"))
def demo_text(
    folder: Annotated[Path, typer.Option(help="Where to leave the compiled model.")] = Path("build"),
    model: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A sentence transformer. Default: all-MiniLM-L6-v2, if installed."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare three sentences by a sentence transformer that never sees them, and show the cost."""
    source = model or text_demo.minilm()
    compiled = text_demo.prepare(folder, source)
    content = text_demo.run(compiled, source, Console(stderr=True) if json else report.console)
    if json:
        report.emit_json(content)


def fail(error: BaseException, message: str, code: int, json: bool) -> NoReturn:
    """One line on standard error, and with --json one object on standard output; then exit."""
    typer.echo(f"error: {message}", err=True)
    try:
        if json:
            report.emit_json({"error": failure(error, message)})
        sys.stdout.flush()
    except OSError:
        report.abandon_output()
    sys.exit(code)


def main(arguments: list[str] | None = None) -> None:
    """Entry point. Exit code 0, 1 for an error, 2 for wrong usage, 130 when interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    json = "--json" in arguments
    try:
        code = app(arguments, prog_name="tacit", standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        fail(error, error.format_message() or "see tacit --help", error.exit_code, json)
    except (Abort, KeyboardInterrupt) as error:
        fail(error, "interrupted", 130, json)
    except Exception as error:  # noqa: BLE001 (a user gets one line, never a traceback)
        if "--debug" in arguments:
            traceback.print_exc()
        known = isinstance(error, TacitError | OSError)
        fail(error, str(error) if known else f"unexpected {type(error).__name__}: {error}", 1, json)
    sys.exit(code if isinstance(code, int) else 0)
