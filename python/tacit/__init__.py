"""Private neural-network inference between two parties.

A client holds an input, a server holds the weights; the client learns the result, the server
learns nothing, and neither learns the other's data.

    import tacit

    model = tacit.compile(module, examples, output="model.tacit")  # of PyTorch, scikit-learn or ONNX
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
    from tacit.batch.job import map_private
    from tacit.compiler.compiler import Options, compile_model
    from tacit.compiler.objects import compile_object as compile  # noqa: A004 (`tacit.compile`, as other packages have it)

__all__ = [
    "BusyError",
    "Client",
    "Listening",
    "MisuseError",
    "Model",
    "Options",
    "PeerError",
    "Prediction",
    "RefusedError",
    "Server",
    "Session",
    "TacitError",
    "TransportError",
    "UnsupportedError",
    "__version__",
    "compile",
    "compile_model",
    "map_private",
]


def __getattr__(name: str) -> Any:
    """Load the compiler, and with it onnx and onnxruntime, only when it is asked for.

    `text` is the module with which clients turn text into inputs.
    """
    if name == "compile":
        from tacit.compiler.objects import compile_object

        return compile_object
    if name in ("Options", "compile_model"):
        from tacit.compiler import compiler

        return getattr(compiler, name)
    if name == "map_private":
        from tacit.batch.job import map_private

        return map_private
    if name == "text":
        from tacit.data import text

        return text
    raise AttributeError(f"module `tacit` has no attribute `{name}`")
