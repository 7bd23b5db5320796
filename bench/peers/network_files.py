"""The files of the networks that both run: the same ONNX file, and one real input, for Tacit and for the peer."""

from dataclasses import replace
from pathlib import Path

import exported
import numpy as np
import onnx
from gpt2_block import block as block_of_gpt2
from numpy.typing import NDArray
from onnx import TensorProto, helper
from ours import tacit
from tacit.data.preprocess import PRESETS
from tacit.demo.digits import asset, digits, write_test_set
from tacit.demo.texts import minilm
from tacit.errors import MisuseError
from tacit.importers.architectures.graph import IR_VERSION, OPSET, Graph
from tacit.importers.architectures.post_norm import block, describe
from tacit.importers.huggingface import load, named, public_embedding
from tacit_lab import random_resnets
from tacit_lab.cifar import pixels
from tacit_lab.heorg.sentences import BERT_BASE, network, states
from works import Network, Prepared

SEQUENCE = 32
CALIBRATION = 300
TOKENS, FEW = 128, 16
"""Tokens of a layer with random weights, and random inputs that calibrate networks of random weights."""
Values = NDArray[np.float32]


def build(work: Network, data: Path, folder: Path) -> Prepared:
    """Everything of a network."""
    folder.mkdir(parents=True, exist_ok=True)
    ways = {"mnist": mnist, "resnet20": resnet20, "minilm": encoder}
    return ways.get(work.source, of_random_weights)(work, data, folder)


def prepared(work: Network, source: Path, folder: Path, x: Values, calibration: Path) -> Prepared:
    """Compile `source` for Tacit, export it for the peer, and store the one input."""
    files = Prepared(source, *(folder / name for name in ("model.tacit", "exported.npz", "input.npy")))
    tacit("compile", source, "-o", files.compiled, "--calibrate", calibration, *work.options)
    exported.write(files.exported, exported.read(onnx.load(source)))
    np.save(files.input, x[:1])
    return files


def mnist(work: Network, data: Path, folder: Path) -> Prepared:
    """The network of the demonstration on its first digit."""
    files = prepared(work, asset("mnist.onnx"), folder, digits().x, asset("mnist_calibration.npz"))
    test = folder / "test.npz"
    write_test_set(test, data / "mnist/mnist.npz")
    return replace(files, test=test)


def resnet20(work: Network, data: Path, folder: Path) -> Prepared:
    """Trained for CIFAR-10, on its first test image; the first training images calibrate."""
    calibration, test = folder / "calibration.npz", folder / "test.npz"
    x, _ = images(data / "cifar10/cifar10_train_50k.npz")
    np.savez(calibration, x=x[:CALIBRATION])
    x, y = images(data / "cifar10/cifar10_test.npz")
    np.savez(test, x=x, y=y)
    return replace(prepared(work, data / "models/resnet20_cifar10.onnx", folder, x, calibration), test=test)


def images(path: Path) -> tuple[Values, NDArray[np.int64]]:
    """Images of a CIFAR file as the network takes them, and their classes."""
    if not path.is_file():
        raise MisuseError(f"{path} does not exist: say where the data is (--data)")
    found, classes = pixels(path)
    return PRESETS["cifar10"].inputs(found.transpose(0, 2, 3, 1)), classes


def encoder(work: Network, _data: Path, folder: Path) -> Prepared:
    """The layers of all-MiniLM-L6-v2, from embedded text to hidden states; no padding, so nothing is masked."""
    source, calibration = folder / "layers.onnx", folder / "calibration.npz"
    onnx.save(layers(), source)
    x = embedded()
    np.savez(calibration, x=x[1:])
    return prepared(work, source, folder, x, calibration)


def of_random_weights(work: Network, _data: Path, folder: Path) -> Prepared:
    """A shape that is measured for its cost alone, on random inputs of about 1 in size."""
    source, calibration = folder / "random.onnx", folder / "calibration.npz"
    if work.source == "resnet18":
        model = random_resnets.build("resnet18")
        x = np.random.default_rng(1).standard_normal((FEW + 1, 3, 224, 224)).astype(np.float32)
    else:
        model = network(BERT_BASE, 1, TOKENS) if work.source == "bert-layer" else block_of_gpt2(TOKENS)
        x = states(BERT_BASE, TOKENS, FEW + 1)
    onnx.save(model, source)
    np.savez(calibration, x=x[1:])
    return prepared(work, source, folder, x, calibration)


def layers() -> onnx.ModelProto:
    """From hidden states (N, hidden, tokens) to hidden states (N, tokens, hidden)."""
    _, config, weights = load(minilm())
    described, name = describe(config), named(config)
    graph = Graph(weights)
    x = graph.add("Transpose", "states", "x", perm=[0, 2, 1])
    for layer in range(described.layers):
        x = block(graph, described, x, None, layer)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", described.hidden, SEQUENCE])
    made = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["N", SEQUENCE, described.hidden])
    built = helper.make_graph(graph.nodes, Path(name).name, [given], [made], list(graph.constants.values()))
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
