"""All commands of `tacit`, and how the process ends."""

import sys
import traceback
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer
from typer.exceptions import Abort, Exit, TyperException

from tacit._core import __version__
from tacit.cli.bench import bench
from tacit.cli.budget import budget, token
from tacit.cli.calibrate import calibrate
from tacit.cli.card import card
from tacit.cli.compile import compile_command
from tacit.cli.demo import demo, demo_text
from tacit.cli.evaluate import evaluate
from tacit.cli.expand import expand
from tacit.cli.fleet import fleet
from tacit.cli.inspect import inspect
from tacit.cli.lola_files import decrypt, encrypt, evaluate_encrypted, keys
from tacit.cli.plan import plan
from tacit.cli.predict import predict
from tacit.cli.report import report
from tacit.cli.reproduce import reproduce
from tacit.cli.run import run
from tacit.cli.serve import serve
from tacit.cli.simulate import simulate
from tacit.cli.top import top
from tacit.cli.train import train
from tacit.cli.writing import chat
from tacit.errors import TacitError, failure
from tacit.report import terminal

app = typer.Typer(
    help="Private neural-network inference between two parties.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)
COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "compile": (compile_command, "mnist.onnx -o mnist.tacit --calibrate train.npz"),
    "inspect": (inspect, "mnist.tacit"),
    "reproduce": (reproduce, "gala-operations"),
    "report": (report, "run.json -o report.html"),
    "keys": (keys, "mnist.plan -o alice"),
    "encrypt": (encrypt, "mnist.plan digits.npy --keys alice -o request.bin"),
    "evaluate-encrypted": (evaluate_encrypted, "mnist.tacit request.bin --keys alice.keys -o answer.bin"),
    "decrypt": (decrypt, "mnist.plan answer.bin --keys alice"),
    "plan": (plan, "mnist.tacit --network wan"),
    "calibrate": (calibrate, ""),
    "simulate": (simulate, "mnist.tacit digits.npy"),
    "serve": (serve, "mnist.tacit --listen 127.0.0.1:7000"),
    "top": (top, "127.0.0.1:9100"),
    "token": (token, "ward-3"),
    "predict": (predict, "--server 10.0.0.2:7000 --pin 4f0c...e1 digits.npy"),
    "run": (run, "mnist.tacit digits.npy"),
    "chat": (chat, "smollm2.tacit --tokens 48"),
    "evaluate": (evaluate, "mnist.tacit test.npz --mode private --limit 100"),
    "demo": (demo, ""),
    "demo-text": (demo_text, ""),
}
"""Commands by name, in the order of the help, each with the arguments of its example."""

for name, (function, arguments) in COMMANDS.items():
    app.command(name, epilog=f"Example: `{f'tacit {name} {arguments}'.strip()}`")(expand(function))
app.add_typer(card, name="card")
app.add_typer(budget, name="budget")
app.add_typer(fleet, name="fleet")
app.add_typer(bench, name="bench")
app.add_typer(fleet, name="fleet")
app.add_typer(train, name="train")


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


def fail(error: BaseException, message: str, code: int, json: bool) -> NoReturn:
    """One line on standard error, and with --json one object on standard output; then exit."""
    typer.echo(f"error: {message}", err=True)
    try:
        if json:
            terminal.emit_json({"error": failure(error, message)})
        sys.stdout.flush()
    except OSError:
        terminal.abandon_output()
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
