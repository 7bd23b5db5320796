"""One layer of a transformer encoder with random weights as an ONNX file, to measure its cost.

    python scripts/random_encoders.py --folder build/encoders

writes `bert-base-128.onnx` (hidden 768, 12 heads, 3072 wide, 128 tokens), and `-32` likewise. Its
input is hidden states (hidden, tokens), about 1 in size; nothing is masked.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from tacit_lab.heorg.sentences import BERT_BASE, MINILM, network, states

SHAPES = {"minilm": MINILM, "bert-base": BERT_BASE}


def layer(name: str, sequence: int) -> onnx.ModelProto:
    """One layer of a shape."""
    return network(SHAPES[name], 1, sequence)


def main() -> None:
    """Write a file for each shape and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/encoders"))
    parser.add_argument("--sequence", type=int, nargs="*", default=[32, 128])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, shape in SHAPES.items():
        for sequence in arguments.sequence:
            path = arguments.folder / f"{name}-{sequence}.onnx"
            onnx.save(layer(name, sequence), path)
            np.savez(path.with_suffix(".npz"), x=states(shape, sequence, 4))
            print(f"wrote {path} and {path.with_suffix('.npz')}")


if __name__ == "__main__":
    main()
