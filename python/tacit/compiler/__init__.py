"""From a float model to a .tacit file.

from tacit.compiler import Options, compile_model
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.compiler.compiler import Options, compile_model

__all__ = ["Options", "compile_model"]


def __getattr__(name: str) -> Any:
    """Load the compiler, and with it onnx and onnxruntime, only when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module `tacit.compiler` has no attribute `{name}`")
    from tacit.compiler import compiler

    return getattr(compiler, name)
