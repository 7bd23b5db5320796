"""One layer of a transformer encoder with random weights as an ONNX file, to measure its cost.

    python scripts/random_encoders.py --folder build/encoders

writes `bert-base-128.onnx` (hidden 768, 12 heads, 3072 wide, 128 tokens), and `-32` likewise. Its
input is hidden states (hidden, tokens), about 1 in size; nothing is masked.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from tacit.importers.architectures.graph import IR_VERSION, OPSET, Graph
from tacit.importers.architectures.post_norm import BERT, Encoder, block

SHAPES = {"minilm": (384, 12, 1536), "bert-base": (768, 12, 3072)}


def weights(hidden: int, wide: int, seed: int) -> dict[str, np.ndarray]:
    """Weights of layer 0: dense layers that keep sizes, norms near 1."""
    random = np.random.default_rng(seed)
    dense = {BERT.query: (hidden, hidden), BERT.key: (hidden, hidden), BERT.value: (hidden, hidden)}
    dense |= {BERT.attended: (hidden, hidden), BERT.wide: (wide, hidden), BERT.narrow: (hidden, wide)}
    found: dict[str, np.ndarray] = {}
    for name, shape in dense.items():
        at = name.format(0)
        found[f"{at}.weight"] = (random.standard_normal(shape) / np.sqrt(shape[1])).astype(np.float32)
        found[f"{at}.bias"] = (0.1 * random.standard_normal(shape[0])).astype(np.float32)
    for name in (BERT.first_norm, BERT.second_norm):
        at = name.format(0)
        found[f"{at}.weight"] = (1 + 0.1 * random.standard_normal(hidden)).astype(np.float32)
        found[f"{at}.bias"] = (0.1 * random.standard_normal(hidden)).astype(np.float32)
    return found


def layer(name: str, sequence: int, seed: int = 0) -> onnx.ModelProto:
    """The layer for hidden states (N, hidden, sequence); its output is the states of all tokens."""
    hidden, heads, wide = SHAPES[name]
    encoder = Encoder(hidden, heads, 1, 1e-12, "Gelu", BERT)
    graph = Graph(weights(hidden, wide, seed))
    x = graph.add("Transpose", "states", "x", perm=[0, 2, 1])
    output = block(graph, encoder, x, None, 0)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", hidden, sequence])
    made = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["N", sequence, hidden])
    constants = list(graph.constants.values())
    built = helper.make_graph(graph.nodes, f"{name}-{sequence}", [given], [made], constants)
    return helper.make_model(built, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def main() -> None:
    """Write a file for each shape and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/encoders"))
    parser.add_argument("--sequence", type=int, nargs="*", default=[32, 128])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in SHAPES:
        for sequence in arguments.sequence:
            path = arguments.folder / f"{name}-{sequence}.onnx"
            onnx.save(layer(name, sequence), path)
            states = np.random.default_rng(1).standard_normal((4, SHAPES[name][0], sequence)).astype(np.float32)
            np.savez(path.with_suffix(".npz"), x=states)
            print(f"wrote {path} and {path.with_suffix('.npz')}")


if __name__ == "__main__":
    main()
