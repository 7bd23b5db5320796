"""Train an MNIST network and write the assets shipped with the package.

`minionn` (MiniONN, CCS 2017, figure 12): conv 5x5x16, ReLU, max-pool 2, conv 5x5x16, ReLU,
max-pool 2, fully connected 256-100, ReLU, fully connected 100-10; 33,402 parameters.
`mlp` (SecureML; the MLP of GALA's tables): fully connected 784-128, ReLU, 128-128, ReLU,
128-10; 118,282 parameters.
Input of both: float32 (N, 1, 28, 28), pixel / 255.

    .venv-train/bin/python python/tacit_lab/train/mnist.py --data ../shared/data/mnist/mnist.npz
    .venv-train/bin/python python/tacit_lab/train/mnist.py --network mlp --epochs 12

The weights written are an exponential moving average taken at the last epoch; the test images
are only ever used to print an accuracy.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn import functional

ASSETS = Path(__file__).resolve().parents[2] / "tacit" / "assets"
OPSET = 13
CALIBRATION_IMAGES = 128


class Images(NamedTuple):
    """The raw data set: uint8 images (N, 28, 28) and labels (N,)."""

    x_train: NDArray[np.uint8]
    y_train: NDArray[np.uint8]
    x_test: NDArray[np.uint8]
    y_test: NDArray[np.uint8]


def load(path: Path) -> Images:
    """Read the four arrays of `mnist.npz`."""
    with np.load(path) as archive:
        return Images(*(archive[name] for name in Images._fields))


def minionn() -> nn.Sequential:
    """MiniONN's network with freshly initialised weights."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 100),
        nn.ReLU(),
        nn.Linear(100, 10),
    )


def mlp() -> nn.Sequential:
    """The multi-layer perceptron with freshly initialised weights."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


NETWORKS = {"minionn": (minionn, "mnist"), "mlp": (mlp, "mnist_mlp")}


def distort(x: Tensor) -> Tensor:
    """Rotate (12 degrees), scale (10 %), shear and shift (2 pixels) each image at random."""
    n = len(x)
    angle = torch.empty(n).uniform_(-0.21, 0.21)
    scale = torch.empty(n).uniform_(0.9, 1.1)
    shear = torch.empty(n).uniform_(-0.15, 0.15)
    shift = torch.empty(n, 2, 1).uniform_(-2 / 14, 2 / 14)
    cosine, sine = torch.cos(angle) / scale, torch.sin(angle) / scale
    rows = torch.stack([cosine, shear - sine, sine, cosine], dim=1).reshape(n, 2, 2)
    grid = functional.affine_grid(torch.cat([rows, shift], dim=2), [n, 1, 28, 28], align_corners=False)
    return functional.grid_sample(x, grid, align_corners=False)


def prepare(images: NDArray[np.uint8]) -> Tensor:
    """Pixels as the network reads them: float32 (N, 1, 28, 28) in [0, 1]."""
    return torch.from_numpy(images).unsqueeze(1).float() / 255


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Share of images whose largest logit is the label."""
    model.eval()
    with torch.no_grad():
        hits = sum((model(a).argmax(1) == b).sum().item() for a, b in zip(x.split(1000), y.split(1000), strict=True))
    return float(hits) / len(y)


def train(model: nn.Sequential, data: Images, epochs: int, batch: int) -> nn.Sequential:
    """Adam with one cycle of the learning rate; returns the averaged weights."""
    x, y = prepare(data.x_train), torch.from_numpy(data.y_train).long()
    x_test, y_test = prepare(data.x_test), torch.from_numpy(data.y_test).long()
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.998))
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.02)
    steps = epochs * (len(x) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=4e-3, total_steps=steps)
    for epoch in range(epochs):
        began = time.monotonic()
        model.train()
        order = torch.randperm(len(x))
        for chosen in order[: len(x) // batch * batch].split(batch):
            loss = functional.cross_entropy(model(distort(x[chosen])), y[chosen], label_smoothing=0.02)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call,unused-ignore]
            optimiser.step()
            schedule.step()
            average.update_parameters(model)
        score = accuracy(average.module, x_test, y_test)
        print(f"epoch {epoch + 1}/{epochs}: test accuracy {score:.4f}, {time.monotonic() - began:.1f} s", flush=True)
    averaged: nn.Sequential = average.module
    return averaged


def step(layer: nn.Module) -> tuple[str, str, dict[str, Any]]:
    """The operator of a layer, the stem of its name, its attributes."""
    if isinstance(layer, nn.Conv2d):
        return "Conv", "conv", {"kernel_shape": list(layer.kernel_size)}
    if isinstance(layer, nn.Linear):
        return "Gemm", "fc", {"transB": 1}
    if isinstance(layer, nn.MaxPool2d):
        return "MaxPool", "pool", {"kernel_shape": [2, 2], "strides": [2, 2]}
    return ("Flatten", "flatten", {"axis": 1}) if isinstance(layer, nn.Flatten) else ("Relu", "relu", {})


def to_onnx(model: nn.Sequential, name: str) -> onnx.ModelProto:
    """The network as an ONNX model, built from the tensors directly; its last layer is linear."""
    nodes, constants = [], []
    seen: dict[str, int] = {}
    previous = "input"
    for index, layer in enumerate(model):
        operator, stem, attributes = step(layer)
        seen[stem] = seen.get(stem, 0) + 1
        own = stem if stem == "flatten" else f"{stem}{seen[stem]}"
        learned = [(f"{own}.{key}", value.detach().numpy()) for key, value in layer.named_parameters()]
        constants += [numpy_helper.from_array(value, key) for key, value in learned]
        output = "logits" if index + 1 == len(model) else f"{own}.out"
        inputs = [previous, *(key for key, _ in learned)]
        nodes.append(helper.make_node(operator, inputs, [output], name=own, **attributes))
        previous = output
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 1, 28, 28])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
        constants,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def write_images(data: Images, folder: Path) -> None:
    """Ten test digits, one per class, and the training images used for calibration."""
    first = [int(np.flatnonzero(data.y_test == digit)[0]) for digit in range(10)]
    digits = prepare(data.x_test[first]).numpy()
    np.savez_compressed(folder / "mnist_digits.npz", x=digits, y=data.y_test[first].astype(np.int64))
    calibration = prepare(data.x_train[:CALIBRATION_IMAGES]).numpy()
    np.savez_compressed(folder / "mnist_calibration.npz", x=calibration)


def main() -> None:
    """Train, then write the network, `mnist_digits.npz` and `mnist_calibration.npz`."""
    parser = argparse.ArgumentParser(description="Train an MNIST network and write the package's assets.")
    parser.add_argument("--network", choices=NETWORKS, default="minionn")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/mnist/mnist.npz"))
    parser.add_argument("--output", type=Path, default=ASSETS)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(True)
    data = load(options.data)
    options.output.mkdir(parents=True, exist_ok=True)
    write_images(data, options.output)
    build, name = NETWORKS[options.network]
    trained = train(build(), data, options.epochs, options.batch)
    output = options.output / f"{name}.onnx"
    onnx.save(to_onnx(trained, name), output)
    print(f"wrote {output}")


if __name__ == "__main__":
    main()
