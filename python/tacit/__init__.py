"""Private neural-network inference between two parties.

A client holds an input, a server holds the weights; the client learns the result, the server
learns nothing, and neither learns the other's data.

    from tacit import Client, Listening, Model, Server, compile_model
"""

from typing import TYPE_CHECKING, Any

from tacit._core import __version__
from tacit.errors import (
    BusyError,
    MisuseError,
    PeerError,
    RefusedError,
    TacitError,
    TransportError,
    UnsupportedError,
)
from tacit.model import Model
from tacit.session.client import Client, Prediction, Session
from tacit.session.server import Listening, Server

if TYPE_CHECKING:
    from tacit.compiler.compiler import compile_model

__all__ = [
    "BusyError",
    "Client",
    "Listening",
    "MisuseError",
    "Model",
    "PeerError",
    "Prediction",
    "RefusedError",
    "Server",
    "Session",
    "TacitError",
    "TransportError",
    "UnsupportedError",
    "__version__",
    "compile_model",
]


def __getattr__(name: str) -> Any:
    """Load the compiler, and with it onnx and onnxruntime, only when it is asked for.

    `text` is the module with which clients turn text into inputs.
    """
    if name == "compile_model":
        from tacit.compiler.compiler import compile_model

        return compile_model
    if name == "text":
        from tacit.data import text

        return text
    raise AttributeError(f"module `tacit` has no attribute `{name}`")
