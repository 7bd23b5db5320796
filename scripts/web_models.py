"""Models and inputs of the bench of the client for browsers (docs/guides/browser.md), into build/web.

`.venv/bin/python scripts/web_models.py [NAME ...]` compiles ResNet-20 and MobileNetV2 of ../shared/data/models as
`scripts/real_networks.py` does, and all-MiniLM-L6-v2 of its package (requirements/text.lock) for 32 tokens with a
public embedding. Beside each compiled model, and for `build/mnist.tacit`, it leaves an input as NAME.npy: float32, one
input with a leading axis, in the model's units.
"""

import sys
from pathlib import Path

import numpy as np
import real_networks
from numpy.typing import NDArray
from tacit.data import text
from tacit.demo import texts

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build/web"
NETWORKS = ("resnet20", "mobilenet")
ASSETS = ROOT / "python/tacit/assets"

Input = NDArray[np.float32]


def mnist() -> Input:
    """The first digit that comes with the package; `make build/mnist.tacit` compiles its network."""
    digits: Input = np.load(ASSETS / "mnist_digits.npz")["x"][:1].astype(np.float32)
    return digits


def pictures(name: str) -> Input:
    """Compile a network of pictures; give the first image of its test set."""
    network = real_networks.NETWORKS[name]
    compiled = real_networks.prepare(name, network, real_networks.DATA, FOLDER)
    pixels = real_networks.images(network.data, real_networks.DATA).test.x[:1]
    sys.stderr.write(f"{compiled}\n")
    return network.preprocessing.normalise(pixels.transpose(0, 2, 3, 1))


def minilm() -> Input:
    """Compile the sentence transformer; give the first sentence of the demonstration, looked up in its embedding."""
    from tacit.compiler.compiler import Options, compile_model
    from tacit.compiler.reading import Reading

    compiled = FOLDER / "minilm.tacit"
    reading = Reading(texts.SEQUENCE, public_embedding=True)
    compile_model(texts.minilm(), compiled, options=Options(reading=reading))
    sentence: Input = text.read(compiled.with_suffix(".text")).tokens(texts.SENTENCES[:1]).x.astype(np.float32)
    return sentence


def main() -> None:
    """Entry point."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    makers = {"mnist": mnist, "minilm": minilm, **{name: lambda name=name: pictures(name) for name in NETWORKS}}
    for name in sys.argv[1:] or makers:
        np.save(FOLDER / f"{name}.npy", makers[name]())


if __name__ == "__main__":
    main()
