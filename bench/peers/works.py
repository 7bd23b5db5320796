"""What is measured: for each work how Tacit runs it and what SPU computes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Bound = tuple[float, float]


@dataclass(frozen=True)
class Operator:
    """Arguments of `tacit bench`; for SPU a function of `spu_functions.py`, shapes of value and weights, and a range.

    `owner` has the value: a linear layer gets the client's own, what follows one gets a shared one.
    """

    title: str
    arguments: tuple[str, ...]
    function: str
    shapes: tuple[tuple[int, ...], ...]
    owner: Literal["client", "shared"] = "shared"
    ring_bits: Literal[32, 64] = 64
    range: Bound = (-4.0, 4.0)
    tolerance: float = 0.05


@dataclass(frozen=True)
class Network:
    """A network both run on the same input: `source` names how `network_files.py` makes its files.

    `options` are of `tacit compile`; the peer always computes with its one ring.
    """

    title: str
    source: Literal["mnist", "resnet20", "minilm", "resnet18", "bert-layer", "gpt2-block"]
    options: tuple[str, ...] = ()
    classifies: bool = True
    tolerance: float = 0.2


@dataclass(frozen=True)
class Token:
    """A token of SmolLM2, the last of a `context`.

    Tacit writes so many `tokens`, of which the mean is taken; the peer's cost is that of one.
    """

    title: str
    context: int = 128
    tokens: int = 32
    kind: str = "language model"


@dataclass(frozen=True)
class Prepared:
    """A network's files: ONNX, compiled for Tacit, exported for the peer, one input (1, ...), test images if any."""

    model: Path
    compiled: Path
    exported: Path
    input: Path
    test: Path | None = None


def sizes(**options: int) -> tuple[str, ...]:
    """Options of a command."""
    return tuple(word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value)))


MILLION = ((1_000_000,),)
OPERATORS = {
    "relu-32": Operator(
        "ReLU, 10^6 values, 32 bits both",
        ("relu", *sizes(count=1_000_000, bits=32)),
        "relu",
        MILLION,
        ring_bits=32,
    ),
    "relu-64": Operator(
        "ReLU, 10^6 values, 63 and 64 bits", ("relu", *sizes(count=1_000_000, bits=63)), "relu", MILLION
    ),
    "relu-network": Operator(
        "ReLU, 10^6 values, as in networks: 12 to 20 and 64 bits",
        ("relu", *sizes(count=1_000_000, bits=12, out_bits=20)),
        "relu",
        MILLION,
    ),
    "conv": Operator(
        "convolution 32x32, 16 to 32, 3x3",
        ("conv", *sizes(height=32, width=32), "--in", "16", "--out", "32", *sizes(kernel=3, padding=1, folded=2)),
        "conv",
        ((1, 16, 32, 32), (32, 16, 3, 3)),
        "client",
    ),
    "matmul": Operator(
        "product 128x768 by 768x768",
        ("matmul", *sizes(rows=128, inner=768, cols=768, folded=4)),
        "matmul",
        ((128, 768), (768, 768)),
        "client",
    ),
    "gelu": Operator("GELU, 128x3072", ("gelu", *sizes(rows=128, cols=3072)), "gelu", ((128, 3072),)),
    "softmax": Operator(
        "softmax, 12x128 rows of 128", ("softmax", *sizes(rows=1536, cols=128)), "softmax", ((12, 128, 128),)
    ),
    "layernorm": Operator("layer norm, 128x768", ("layernorm", *sizes(rows=128, cols=768)), "layernorm", ((128, 768),)),
    "maxpool": Operator(
        "max pool 2x2 on 64x56x56",
        ("maxpool", *sizes(count=64 * 28 * 28, bits=12, window=4)),
        "maxpool",
        ((1, 64, 56, 56),),
    ),
    "argmax": Operator(
        "argmax of 1000", ("argmax", *sizes(count=1000, bits=16)), "argmax", ((1, 1000),), tolerance=0.0
    ),
}
NETWORKS = {
    "mnist": Network("MNIST CNN of MiniONN", "mnist"),
    "resnet20": Network("ResNet-20, CIFAR-10", "resnet20"),
    "resnet20-6": Network("ResNet-20, CIFAR-10, 6 bits here", "resnet20", sizes(weight_bits=6, activation_bits=6)),
    "minilm": Network(
        "MiniLM, 6 layers, 32 tokens, from embeddings", "minilm", sizes(weight_bits=10), classifies=False
    ),
    "resnet18": Network("ResNet-18, 224x224, random weights", "resnet18", classifies=False),
    "bert-layer": Network("a layer of BERT-base, 128 tokens, random weights", "bert-layer", classifies=False),
    "gpt2-block": Network("a block of GPT-2, 128 tokens at once, random weights", "gpt2-block", classifies=False),
}
TOKENS = {"smollm2": Token("a token of SmolLM2-135M-Instruct at context 128")}
