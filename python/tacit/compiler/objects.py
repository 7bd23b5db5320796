"""Models as they are in Python: modules of PyTorch, estimators of scikit-learn, ONNX models, and paths.

What is no file yet is written as ONNX into a temporary folder, by the exporter of its own framework, which is
imported only here.
"""

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.pipelines import compile_pipeline
from tacit.compiler.trees import are_trees, compile_ensemble
from tacit.data.schema import Schema
from tacit.data.tables import is_frame
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.packed import model_name
from tacit.importers.pipelines import Layers, Trees, is_pipeline
from tacit.importers.pipelines import read as read_pipeline
from tacit.importers.trees import is_ensemble, of_estimator
from tacit.importers.trees.meaning import result_of
from tacit.model import Model

Floats = NDArray[np.float32]
OPSET = 17
"""The opset that models are exported at."""
INPUT = "input"
INSTEAD = {
    "keras": "convert it with tf2onnx (tf2onnx.convert.from_keras(model)[0]) and compile the result",
    "tensorflow": "convert it with tf2onnx (tf2onnx.convert.from_keras(model)[0]) and compile the result",
    "transformers": "give its folder (model.save_pretrained), or export it to ONNX, and compile the path",
    "lightgbm": "give a Booster, or an estimator that is fitted",
    "catboost": "give a model that is fitted",
    "jax": "export it to ONNX and compile the path",
    "flax": "export it to ONNX and compile the path",
}
"""What to do with objects of other packages."""


def compile_object(
    model: Any,
    example: Any = None,
    *,
    output: str | os.PathLike[str] | None = None,
    input_range: tuple[float, float] | None = None,
    options: Options | None = None,
) -> Model:
    """Compile a module of PyTorch, an estimator or pipeline, a booster of a tree library, an ONNX model, or a path.

    `example` are inputs (N, ...), a hundred or so typical ones: they calibrate the model, and a module of PyTorch
    is exported for their shape. Of a pipeline they are rows (N, columns), an array or a data frame. Without them
    random inputs in `input_range` (0 to 1) do, which costs accuracy; decision trees need none, and pipelines take what
    their scalers saw.
    `output` is the file to write; without it the file is temporary and is deleted when Python ends.
    Raises `MisuseError` for an object that is no model, and `UnsupportedError`, naming the node, for a model that
    Tacit cannot run.
    """
    target = Path(temporary(), f"{name_of(model)}.tacit") if output is None else Path(output)
    if is_pipeline(model) and (found := pipeline(model, example)) is not None:
        compile_pipeline(found, name_of(model), example, target, options)
        return Model(target)
    ensemble = of_estimator(model) if is_ensemble(model) else None
    x = None if example is None or ensemble is not None else inputs(example)
    if ensemble is not None:
        classes = tuple(map(str, np.asarray(getattr(model, "classes_", ())).tolist()))
        named = bool(ensemble.columns) and not any(ensemble.categories)
        schema = Schema.plain(ensemble.columns, result_of(ensemble, classes)) if named else None
        compile_ensemble(ensemble, Path(name_of(model)), target, options, schema)
        return Model(target)
    with written(model, x) as source:
        compile_model(source, target, x, input_range, options)
        guessed = x is None and input_range is None and not source.is_dir() and not are_trees(source)
    if guessed and (options is None or options.reading is None):
        what = "no example inputs: ranges are guessed from random inputs in [0, 1], which costs accuracy"
        warnings.warn(what, stacklevel=2)
    return Model(target)


def pipeline(model: Any, example: Any) -> Layers | Trees | None:
    """Read a pipeline of scikit-learn; gives None where its exporter has to do.

    Raises `UnsupportedError` with what does not run where the exporter is not installed either.
    """
    try:
        return read_pipeline(model, example)
    except UnsupportedError:
        if find_spec("skl2onnx") is None or is_frame(example):
            raise
        return None


def inputs(example: Any) -> Floats:
    """Examples as an array of floats; tensors of PyTorch are taken as they are."""
    if isinstance(example, dict | tuple):
        raise MisuseError("the example is a collection; give one array (N, ...), as models have one input")
    if packages(example) & {"torch"}:
        example = example.detach().cpu().numpy()
    try:
        x = np.asarray(example, np.float32)
    except (TypeError, ValueError) as error:
        raise MisuseError(f"the example is no array of numbers ({error}); give one array (N, ...)") from error
    if x.ndim < 2 or not len(x):
        raise MisuseError(f"the example has shape {list(x.shape)}; give one or more inputs, the batch first")
    return x


def packages(value: Any) -> set[str]:
    """The packages that the class of a value, and the classes it is made of, come from."""
    return {kind.__module__.partition(".")[0] for kind in type(value).__mro__}


def name_of(model: Any) -> str:
    """What the model is called: after its file, or else after its class."""
    if isinstance(model, str | os.PathLike):
        return model_name(Path(model))
    return "model" if "onnx" in packages(model) else type(model).__name__


def temporary() -> str:
    """A folder that is deleted when Python ends."""
    folder = tempfile.mkdtemp(prefix="tacit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def written(model: Any, x: Floats | None) -> Iterator[Path]:
    """The model as a file, which is there for the block."""
    if isinstance(model, str | os.PathLike):
        yield Path(model)
        return
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        path = Path(folder, f"{name_of(model)}.onnx")
        path.write_bytes(serialised(model, x, path))
        yield path


def serialised(model: Any, x: Floats | None, path: Path) -> bytes:
    """The model as ONNX; `path` may be written on the way."""
    known = packages(model)
    if "onnx" in known and hasattr(model, "SerializeToString"):
        return bytes(model.SerializeToString())
    if "torch" in known and hasattr(model, "forward"):
        return of_torch(model, x, path)
    if "sklearn" in known and hasattr(model, "predict"):
        return of_sklearn(model, x)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    advice = next((INSTEAD[package] for package in INSTEAD if package in known), None)
    accepted = "give a module of PyTorch, an estimator of scikit-learn, an ONNX model, or the path of a model"
    raise MisuseError(f"{kind} is no model that is compiled from Python; {advice or accepted}")


def of_torch(module: Any, x: Floats | None, path: Path) -> bytes:
    """A module of PyTorch, exported in evaluation mode for one example, with a batch of any size."""
    if x is None:
        raise MisuseError("a module of PyTorch says no shape; give examples: tacit.compile(module, x)")
    torch = import_module("torch")
    first = next(iter(module.parameters()), None)
    example = torch.from_numpy(x[:1].copy())
    example = example if first is None else example.to(first.device)
    plain: dict[str, Any] = {"dynamic_axes": {INPUT: {0: "N"}}, "opset_version": OPSET}
    chooses = "dynamo" in signature(torch.onnx.export).parameters
    ways = [{**plain, "dynamo": False}, {"dynamo": True, "verbose": False}] if chooses else [plain]
    failed: list[str] = []
    with evaluated(module), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_once(module, example)
        for settings in ways:
            try:
                torch.onnx.export(module, (example,), str(path), input_names=[INPUT], **settings)
            except Exception as error:  # noqa: BLE001 (exporters raise whatever a module does)
                failed.append(first_line(error))
            else:
                return whole(path)
    raise MisuseError(
        f"torch.onnx.export cannot export {type(module).__name__} ({failed[0]}); rewrite what it cannot trace, or "
        "export the module to ONNX and compile the path"
    )


def run_once(module: Any, example: Any) -> None:
    """Let the module run, as an exporter would, so that an example of another shape is found to be one."""
    try:
        module(example)
    except Exception as error:
        shown = f"an input of shape {list(example.shape)}"
        advice = "give examples as the module reads them, the batch first; of text, compile the model's folder"
        raise MisuseError(f"{type(module).__name__} fails on {shown} ({first_line(error)}); {advice}") from error


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def whole(path: Path) -> bytes:
    """A model's file with the weights that an exporter may have written beside it."""
    onnx = import_module("onnx")
    return bytes(onnx.load(str(path)).SerializeToString())


@contextmanager
def evaluated(module: Any) -> Iterator[None]:
    """The module in evaluation mode for the block, and all of its parts as they were after it."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def of_sklearn(estimator: Any, x: Floats | None) -> bytes:
    """An estimator or a pipeline of scikit-learn, by skl2onnx."""
    features = getattr(estimator, "n_features_in_", None) if x is None else x.shape[1]
    if features is None:
        raise MisuseError(f"{type(estimator).__name__} says no number of features: fit it, or give example inputs")
    try:
        skl2onnx = import_module("skl2onnx")
    except ImportError:
        raise MisuseError("estimators of scikit-learn need skl2onnx; install it: pip install skl2onnx") from None
    example = np.zeros((1, int(features)), np.float32) if x is None else x[:1]
    try:
        return bytes(skl2onnx.to_onnx(estimator, example, target_opset=OPSET).SerializeToString())
    except Exception as error:  # skl2onnx raises errors of its own and those of estimators
        raise MisuseError(
            f"skl2onnx cannot convert {type(estimator).__name__} ({first_line(error)}); fit it first, or use an "
            "estimator that skl2onnx knows"
        ) from error
