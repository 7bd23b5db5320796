"""The files of the networks that both run: the same ONNX file, and one real input, for Tacit and for the peer."""

from pathlib import Path

import exported
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from ours import tacit
from tacit.cifar import pixels
from tacit.demo import asset, digits
from tacit.errors import MisuseError
from tacit.importers.encoder import IR_VERSION, OPSET, Graph, block
from tacit.importers.huggingface import load, public_embedding
from tacit.preprocess import PRESETS
from tacit.text_demo import minilm
from works import Prepared

SEQUENCE = 32
CALIBRATION = 300
Values = NDArray[np.float32]


def build(name: str, data: Path, folder: Path) -> Prepared:
    """Everything of a network of `works.NETWORKS`."""
    folder.mkdir(parents=True, exist_ok=True)
    return {"mnist": mnist, "resnet20": resnet20, "minilm": encoder}[name](data, folder)


def prepared(source: Path, folder: Path, x: Values, calibration: Path, *options: str) -> Prepared:
    """Compile `source` for Tacit, export it for the peer, and store the one input."""
    files = Prepared(source, *(folder / name for name in ("model.tacit", "exported.npz", "input.npy")))
    tacit("compile", source, "-o", files.compiled, "--calibrate", calibration, *options)
    exported.write(files.exported, exported.read(onnx.load(source)))
    np.save(files.input, x[:1])
    return files


def mnist(_data: Path, folder: Path) -> Prepared:
    """The network of the demonstration on its first digit."""
    return prepared(asset("mnist.onnx"), folder, digits().x, asset("mnist_calibration.npz"))


def resnet20(data: Path, folder: Path) -> Prepared:
    """Trained for CIFAR-10, on its first test image; the first training images calibrate."""
    calibration = folder / "calibration.npz"
    np.savez(calibration, x=inputs(data / "cifar10/cifar10_train_50k.npz", CALIBRATION))
    x = inputs(data / "cifar10/cifar10_test.npz", 1)
    return prepared(data / "models/resnet20_cifar10.onnx", folder, x, calibration)


def inputs(path: Path, count: int) -> Values:
    """Images of a CIFAR file as the network takes them."""
    if not path.is_file():
        raise MisuseError(f"{path} does not exist: say where the data is (--data)")
    return PRESETS["cifar10"].inputs(pixels(path)[0][:count].transpose(0, 2, 3, 1))


def encoder(_data: Path, folder: Path) -> Prepared:
    """The layers of all-MiniLM-L6-v2, from embedded text to hidden states; no padding, so nothing is masked."""
    source, calibration = folder / "layers.onnx", folder / "calibration.npz"
    onnx.save(layers(), source)
    x = embedded()
    np.savez(calibration, x=x[1:])
    return prepared(source, folder, x, calibration, "--weight-bits", "10")


def layers() -> onnx.ModelProto:
    """From hidden states (N, hidden, tokens) to hidden states (N, tokens, hidden)."""
    described, weights, name = load(minilm(), SEQUENCE)
    graph = Graph(weights)
    x = graph.add("Transpose", "states", "x", perm=[0, 2, 1])
    for layer in range(described.layers):
        x = block(graph, described, x, None, layer)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", described.hidden, SEQUENCE])
    made = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["N", SEQUENCE, described.hidden])
    built = helper.make_graph(graph.nodes, Path(name).name, [given], [made], graph.constants)
    return helper.make_model(built, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def embedded() -> Values:
    """Hidden states of pieces of `SEQUENCE` tokens of the texts that calibrate, (N, hidden, tokens)."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    texts = asset("calibration_texts.txt").read_text(encoding="utf-8").splitlines()
    ids = [number for text in texts for number in tokenizer.encode(text).ids]
    pieces = np.array(ids[: len(ids) // SEQUENCE * SEQUENCE], np.float32).reshape(-1, 1, SEQUENCE)
    states = public_embedding(minilm(), SEQUENCE).inputs(np.concatenate([pieces, np.ones_like(pieces)], axis=1))
    return np.ascontiguousarray(states[:, :-1])
