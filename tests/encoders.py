"""Tiny encoders with random weights: directories of Hugging Face, and exports as PyTorch writes them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

HIDDEN, HEADS, LAYERS, WIDE, VOCABULARY, POSITIONS = 32, 4, 2, 64, 100, 40
WORDS = [
    "a",
    "the",
    "man",
    "woman",
    "dog",
    "cat",
    "plays",
    "sees",
    "eats",
    "ball",
    "fish",
    "on",
    "in",
    "red",
    "blue",
    "and",
]


def weights(layers: int = LAYERS, labels: int = 0, seed: int = 0) -> dict[str, np.ndarray]:
    """BERT's weights, by their names without a prefix."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) / np.sqrt(columns) * 1.5).astype(np.float32)

    def vector(length: int, centre: float = 0.0) -> np.ndarray:
        return (centre + 0.2 * random.standard_normal(length)).astype(np.float32)

    found: dict[str, np.ndarray] = {}
    for name, rows in (("word", VOCABULARY), ("position", POSITIONS), ("token_type", 2)):
        found[f"embeddings.{name}_embeddings.weight"] = random.standard_normal((rows, HIDDEN)).astype(np.float32)
    dense = {
        "attention.self.query": (HIDDEN, HIDDEN),
        "attention.self.key": (HIDDEN, HIDDEN),
        "attention.self.value": (HIDDEN, HIDDEN),
        "attention.output.dense": (HIDDEN, HIDDEN),
        "intermediate.dense": (WIDE, HIDDEN),
        "output.dense": (HIDDEN, WIDE),
    }
    norms = ["embeddings.LayerNorm"]
    matrices = {"pooler.dense": (HIDDEN, HIDDEN)}
    for layer in range(layers):
        matrices |= {f"encoder.layer.{layer}.{name}": shape for name, shape in dense.items()}
        norms += [f"encoder.layer.{layer}.{part}LayerNorm" for part in ("attention.output.", "output.")]
    if labels:
        matrices["classifier"] = (labels, HIDDEN)
    for name, shape in matrices.items():
        found[f"{name}.weight"], found[f"{name}.bias"] = matrix(*shape), vector(shape[0])
    for name in norms:
        found[f"{name}.weight"], found[f"{name}.bias"] = vector(HIDDEN, 1.0), vector(HIDDEN)
    return found


CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "intermediate_size": WIDE,
    "vocab_size": VOCABULARY,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]


def write(
    folder: Path,
    pooling: str | None = None,
    prefix: str = "",
    stored: dict[str, np.ndarray] | None = None,
    **config: Any,
) -> Path:
    """A directory; with `pooling`, that of a sentence transformer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    stored = weights() if stored is None else stored
    save_file({prefix + name: value for name, value in stored.items()}, folder / "model.safetensors")
    if pooling is not None:
        (folder / "modules.json").write_text(json.dumps(MODULES))
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    write_tokenizer(folder / "tokenizer.json")
    return folder


def write_tokenizer(path: Path) -> None:
    """Whole words, as BERT frames them."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: index for index, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(path))


def tokens(count: int, sequence: int, seed: int = 1) -> np.ndarray:
    """Inputs (count, 2, sequence) of random tokens and lengths; the first is as long as possible."""
    random = np.random.default_rng(seed)
    x = np.zeros((count, 2, sequence), np.float32)
    for index in range(count):
        length = sequence if index == 0 else int(random.integers(2, sequence + 1))
        x[index, 0, :length] = random.integers(1, VOCABULARY, length)
        x[index, 1, :length] = 1
    return x


class Export:
    """A BERT as `torch.onnx.export` writes it at opset 13: norms, GELU and masks as arithmetic."""

    def __init__(
        self, masks: str = "subtract", gelu: str = "erf", fused: bool = False, scaling: str = "scores", opset: int = 13
    ) -> None:
        self.masks, self.gelu, self.fused, self.scaling, self.opset = masks, gelu, fused, scaling, opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.stored = weights()

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """A node; gives the names of what it writes."""
        name = f"/{operator}_{len(self.nodes)}"
        written = [f"{name}_output_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), written, name=name, **attributes))
        return written[0] if outputs == 1 else written

    def constant(self, value: Any) -> str:
        """A constant of any type; Python's numbers become float32."""
        name = f"constant_{len(self.constants)}"
        array = np.asarray(value, np.float32) if isinstance(value, float) else np.asarray(value)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def dense(self, x: str, name: str) -> str:
        product = self.add("MatMul", x, self.constant(self.stored[f"{name}.weight"].T))
        return self.add("Add", self.constant(self.stored[f"{name}.bias"]), product)

    def norm(self, x: str, name: str) -> str:
        scale, bias = (self.constant(self.stored[f"{name}.{role}"]) for role in ("weight", "bias"))
        if self.opset >= 17:
            return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)
        centred = self.add("Sub", x, self.add("ReduceMean", x, axes=[-1]))
        variance = self.add("ReduceMean", self.add("Pow", centred, self.constant(2.0)), axes=[-1])
        deviation = self.add("Sqrt", self.add("Add", variance, self.constant(1e-12)))
        return self.add("Add", self.add("Mul", self.add("Div", centred, deviation), scale), bias)

    def activation(self, x: str) -> str:
        half = self.constant(0.5)
        if self.gelu == "erf":
            error = self.add("Erf", self.add("Div", x, self.constant(float(np.sqrt(2)))))
            return self.add("Mul", self.add("Mul", x, self.add("Add", error, self.constant(1.0))), half)
        cube = self.add("Mul", self.constant(0.044715), self.add("Pow", x, self.constant(3.0)))
        inner = self.add("Mul", self.add("Add", x, cube), self.constant(float(np.sqrt(2 / np.pi))))
        tanh = self.add("Add", self.add("Tanh", inner), self.constant(1.0))
        return self.add("Mul", self.add("Mul", half, x), tanh)

    def mask(self) -> str:
        """What scores are masked by: a penalty to add, or a condition."""
        wide = self.add("Unsqueeze", self.add("Unsqueeze", "attention_mask", self.ints(1)), self.ints(2))
        if self.masks == "where":
            return self.add("Equal", self.add("Cast", wide, to=TensorProto.FLOAT), self.constant(0.0))
        absent = self.add("Sub", self.constant(1.0), self.add("Cast", wide, to=TensorProto.FLOAT))
        if self.masks == "subtract":
            return self.add("Mul", absent, self.constant(float(np.finfo(np.float32).min)))
        # Newer exports: expanded to (batch, 1, sequence, sequence), inverted, filled.
        shape = self.add("Shape", "input_ids")
        batch, length = (self.add("Gather", shape, self.ints(index), axis=0) for index in (0, 1))
        target = self.add("Concat", batch, self.ints(1), length, length, axis=0)
        inverted = self.add("Expand", absent, target)
        hidden = self.add("Cast", inverted, to=TensorProto.BOOL)
        return self.add("Where", hidden, self.constant(float(np.finfo(np.float32).min)), inverted)

    def heads(self, x: str, order: list[int]) -> str:
        shape = self.add("Shape", x)
        sizes = [self.add("Gather", shape, self.ints(index), axis=0) for index in (0, 1)]
        target = self.add("Concat", *sizes, self.ints(HEADS), self.ints(HIDDEN // HEADS), axis=0)
        return self.add("Transpose", self.add("Reshape", x, target), perm=order)

    def projections(self, x: str, at: str) -> list[str]:
        names = [f"{at}.attention.self.{role}" for role in ("query", "key", "value")]
        if not self.fused:
            return [self.dense(x, name) for name in names]
        weight = np.concatenate([self.stored[f"{name}.weight"] for name in names])
        bias = np.concatenate([self.stored[f"{name}.bias"] for name in names])
        joined = self.add("Add", self.add("MatMul", x, self.constant(weight.T)), self.constant(bias))
        return list(self.add("Split", joined, self.ints(HIDDEN, HIDDEN, HIDDEN), outputs=3, axis=-1))

    def layer(self, x: str, mask: str, layer: int) -> str:
        at = f"encoder.layer.{layer}"
        query, key, value = self.projections(x, at)
        query, key = self.heads(query, [0, 2, 1, 3]), self.heads(key, [0, 2, 3, 1])
        width = HIDDEN // HEADS
        if self.scaling == "both":
            root = self.constant(float(width**-0.25))
            query, key = self.add("Mul", query, root), self.add("Mul", key, root)
        scores = self.add("MatMul", query, key)
        if self.scaling == "scores":
            scores = self.add("Div", scores, self.constant(float(np.sqrt(width))))
        if self.masks == "where":
            scores = self.add("Where", mask, self.constant(float(np.finfo(np.float32).min)), scores)
        else:
            scores = self.add("Add", scores, mask)
        chances = self.add("Softmax", scores, axis=-1)
        if self.masks == "expand":
            chances = self.add("Where", self.add("IsNaN", chances), self.constant(0.0), chances)
        context = self.add("MatMul", chances, self.heads(value, [0, 2, 1, 3]))
        joined = self.add("Reshape", self.add("Transpose", context, perm=[0, 2, 1, 3]), self.ints(0, 0, HIDDEN))
        attended = self.dense(joined, f"{at}.attention.output.dense")
        x = self.norm(self.add("Add", attended, x), f"{at}.attention.output.LayerNorm")
        wide = self.activation(self.dense(x, f"{at}.intermediate.dense"))
        return self.norm(self.add("Add", self.dense(wide, f"{at}.output.dense"), x), f"{at}.output.LayerNorm")

    def embed(self) -> str:
        word, position, kind = (
            self.constant(self.stored[f"embeddings.{name}_embeddings.weight"])
            for name in ("word", "position", "token_type")
        )
        length = self.add("Gather", self.add("Shape", "input_ids"), self.ints(1), axis=0)
        numbers = self.constant(np.arange(POSITIONS, dtype=np.int64)[None])
        places = self.add("Slice", numbers, self.ints(0), length, self.ints(1), self.ints(1))
        x = self.add("Add", self.add("Gather", word, "input_ids"), self.add("Gather", kind, "token_type_ids"))
        return self.norm(self.add("Add", x, self.add("Gather", position, places)), "embeddings.LayerNorm")

    def proto(self, pooled: bool = True) -> onnx.ModelProto:
        """The model; its second output is the pooler's."""
        x, mask = self.embed(), self.mask()
        for layer in range(LAYERS):
            x = self.layer(x, mask, layer)
        self.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"], name="last"))
        ends = {"last_hidden_state": ["batch", "sequence", HIDDEN]}
        if pooled:
            first = self.add("Gather", x, self.constant(np.int64(0)), axis=1)
            dense = self.add("Gemm", first, *self.pooler(), transB=1)
            self.nodes.append(helper.make_node("Tanh", [dense], ["pooler_output"], name="pooler"))
            ends["pooler_output"] = ["batch", HIDDEN]
        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in names]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends.items()]
        graph = helper.make_graph(self.nodes, "main_graph", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def pooler(self) -> list[str]:
        return [self.constant(self.stored[f"pooler.dense.{role}"]) for role in ("weight", "bias")]
