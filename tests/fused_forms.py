"""Small models with the operators that onnxruntime's optimiser writes, and with ONNX's own of opset 23."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from networks import Network
from onnx import TensorProto, helper

EXTRA = "com.microsoft"
ROWS = (1, 6, 16)


def numbered(network: Network, value: Any, kind: Any = np.float32) -> str:
    """A constant; gives its name."""
    return network.constant(f"c{len(network.constants)}", np.asarray(value, kind))


def fused(
    operator: str,
    *shapes: Sequence[int] | None,
    shape: Sequence[int] = ROWS,
    opset: int = 17,
    domain: str = EXTRA,
    **attributes: Any,
) -> Callable[[], Network]:
    """The operator with constants of some shapes behind the input, around one for vectors."""

    def build() -> Network:
        network = Network(shape, opset=opset)
        names = []
        for size in shapes:
            value = None if size is None else network.normal(*size)
            value = value if value is None or len(size) != 1 else 1 + value / 4
            names.append("" if value is None else numbered(network, value))
        return network.add(operator, *names, domain=domain, **attributes)

    return build


def fused_conv(activation: str, *parameters: float) -> Callable[[], Network]:
    """A convolution that an activation is fused into."""

    def build() -> Network:
        network = Network((1, 3, 6, 6))
        names = [numbered(network, network.normal(4, 3, 3, 3)), numbered(network, network.normal(4, 9)[:, 0])]
        more = {"activation_params": list(parameters)} if parameters else {}
        return network.add("FusedConv", *names, domain=EXTRA, activation=activation, pads=[1, 1, 1, 1], **more)

    return build


def fused_sum() -> Network:
    """A convolution that an addition and an activation are fused into."""
    network = Network((1, 4, 6, 6))
    names = [numbered(network, network.normal(4, 4, 3, 3)), numbered(network, network.normal(4, 9)[:, 0])]
    return network.add("FusedConv", *names, "x", domain=EXTRA, activation="Relu", pads=[1, 1, 1, 1])


def scores() -> Network:
    """Scaled products of rows with one another."""
    network = Network((1, 2, 5, 8)).add("Tanh", name="a").add("Relu", inputs=["x"], name="b")
    return network.add("FusedMatMul", inputs=["a.out", "b.out"], domain=EXTRA, transB=1, alpha=0.25)


def turned_scores() -> Network:
    """Products of columns with one another."""
    network = Network((1, 2, 5, 8)).add("Tanh", name="a").add("Relu", inputs=["x"], name="b")
    return network.add("FusedMatMul", inputs=["a.out", "b.out"], domain=EXTRA, transA=1)


def skip(operator: str, vectors: int, *, summed: bool = False) -> Callable[[], Network]:
    """A norm of a sum, with so many vectors; with the sum as a second thing that is read."""

    def build() -> Network:
        network = Network(ROWS).add("Tanh", name="a")
        names = [numbered(network, 1 + network.normal(16) / 4) for _ in range(vectors)]
        outputs = ["", "", "total"] if summed else []
        network.add(operator, "a.out", *names, outputs=outputs, domain=EXTRA, epsilon=1e-5)
        return network.add("Add", "total") if summed else network

    return build


def attention(*, hides: bool = False, sizes: Sequence[int] = (), opset: int = 17) -> Callable[[], Network]:
    """Attention with its projections."""

    def build() -> Network:
        network = Network(ROWS, opset=opset)
        width = sum(sizes) or 48
        names = [numbered(network, network.normal(16, width) * 1.5)]
        names.append(numbered(network, network.normal(width, 4)[:, 0]))
        more = {"qkv_hidden_sizes": list(sizes)} if sizes else {}
        return network.add("Attention", *names, domain=EXTRA, num_heads=2, unidirectional=int(hides), **more)

    return build


def multi_head(bias: bool) -> Callable[[], Network]:
    """Attention whose projections are layers of their own."""

    def build() -> Network:
        network = Network(ROWS)
        for name in "qkv":
            network.add("MatMul", inputs=["x", numbered(network, network.normal(16, 16) * 1.5)], name=name)
        names = [numbered(network, network.normal(48, 4)[:, 0])] if bias else []
        return network.add("MultiHeadAttention", inputs=["q.out", "k.out", "v.out", *names], domain=EXTRA, num_heads=2)

    return build


def own_attention(*, wide: bool, hides: bool = False, mask: bool = False, keys: int = 2) -> Callable[[], Network]:
    """Attention as ONNX has it since opset 23."""

    def build() -> Network:
        network = Network(ROWS if wide else (1, 2, 6, 8), opset=23)
        for name in "qkv":
            size = 16 if wide else 8
            made = size if name == "q" else size * keys // 2
            network.add("MatMul", inputs=["x", numbered(network, network.normal(size, made) * 1.5)], name=name)
        names = [numbered(network, network.random.uniform(-1, 0, (1, 1, 6, 6)))] if mask else []
        heads = {"q_num_heads": 2, "kv_num_heads": keys} if wide else {}
        return network.add("Attention", inputs=["q.out", "k.out", "v.out", *names], is_causal=int(hides), **heads)

    return build


def rotary(shape: Sequence[int]) -> Callable[[], Network]:
    """Halves of heads turned by constant angles."""

    def build() -> Network:
        network = Network(shape, opset=23)
        angles = np.arange(6)[:, None] * np.array([1.0, 0.5, 0.1, 0.02])
        names = [numbered(network, table(angles)[None]) for table in (np.cos, np.sin)]
        return network.add("RotaryEmbedding", *names, num_heads=2)

    return build


def gelu() -> Network:
    """GELU of a layer."""
    network = Network(ROWS)
    return network.add("MatMul", numbered(network, network.normal(16, 16))).add("Gelu", domain=EXTRA)


def early_norm(operator: str, *vectors: str) -> Callable[[], Network]:
    """A norm that onnxruntime writes into ONNX's own domain."""

    def build() -> Network:
        network = Network(ROWS)
        names = [numbered(network, 1 + network.normal(16) / 4) for _ in vectors]
        return network.add(operator, *names, axis=-1, epsilon=1e-5)

    return build


FORMS: dict[str, Callable[[], Network]] = {
    "attention": attention(),
    "attention, opset 12": attention(opset=12),
    "attention, causal": attention(hides=True),
    "attention, sizes": attention(sizes=[16, 16, 8]),
    "bias and gelu": fused("BiasGelu", [16]),
    "bias and gelu, opset 20": fused("BiasGelu", [16], opset=20),
    "conv and clip": fused_conv("Clip", 0.0, 0.75),
    "conv and hard sigmoid": fused_conv("HardSigmoid", 0.25, 0.5),
    "conv and leaky relu": fused_conv("LeakyRelu", 0.1),
    "conv and relu": fused_conv("Relu"),
    "conv and tanh": fused_conv("Tanh"),
    "conv, sum and relu": fused_sum,
    "fast gelu, opset 20": fused("FastGelu", [16], opset=20),
    "fast gelu of a sum": fused("FastGelu", [16]),
    "gelu": gelu,
    "gemm and relu": fused("FusedGemm", [8, 5], [5], shape=(1, 8), activation="Relu"),
    "gemm and leaky relu": fused(
        "FusedGemm", [5, 8], [5], shape=(1, 8), transB=1, activation="LeakyRelu", activation_alpha=0.2
    ),
    "matmul, turned constant": fused("FusedMatMul", [12, 16], transB=1, alpha=0.5),
    "matmul, turned scores": turned_scores,
    "matmul, scores": scores,
    "multi-head attention": multi_head(False),
    "multi-head attention with a bias": multi_head(True),
    "norm before opset 17": early_norm("LayerNormalization", "scale", "bias"),
    "own attention": own_attention(wide=False),
    "own attention of rows": own_attention(wide=True),
    "own attention of two heads to one": own_attention(wide=True, keys=1),
    "own attention with a mask": own_attention(wide=True, mask=True),
    "own attention, causal": own_attention(wide=True, hides=True),
    "own rotary embedding": rotary((1, 2, 6, 8)),
    "own rotary embedding of rows": rotary(ROWS),
    "quick gelu": fused("QuickGelu", alpha=1.5),
    "root mean square": early_norm("SimplifiedLayerNormalization", "scale"),
    "skip and norm": skip("SkipLayerNormalization", 2),
    "skip, bias and norm": skip("SkipLayerNormalization", 3, summed=True),
    "skip and root mean square": skip("SkipSimplifiedLayerNormalization", 1),
    "skip, bias and root mean square": skip("SkipSimplifiedLayerNormalization", 2),
}


def reader(*, embeds: bool = True) -> onnx.ModelProto:
    """A reader of text as the optimiser leaves it: an embedding, attention with a mask, norms of sums, and GELU."""
    network = Network((1, 6, 16), seed=3)
    vectors = [numbered(network, 1 + network.normal(16) / 4) for _ in range(8)]
    tables = [numbered(network, network.normal(rows, 16) * 4) for rows in (50, 10, 2)]
    inputs = ["input_ids", "token_type_ids", *tables, *vectors[:2], "attention_mask"]
    network.add("EmbedLayerNormalization", inputs=inputs, outputs=["mask_index"], domain=EXTRA, name="embed")
    names = [numbered(network, network.normal(16, 48) * 1.5), numbered(network, network.normal(48, 4)[:, 0])]
    mask = "mask_index" if embeds else "attention_mask"
    network.add("Attention", *names, mask, domain=EXTRA, num_heads=2)
    network.add("SkipLayerNormalization", "embed.out", *vectors[2:4], domain=EXTRA, name="first")
    network.add("MatMul", numbered(network, network.normal(16, 32))).add(
        "BiasGelu", numbered(network, network.normal(32, 4)[:, 0]), domain=EXTRA
    )
    network.add("MatMul", numbered(network, network.normal(32, 16)))
    network.add("SkipLayerNormalization", "first.out", *vectors[4:7], domain=EXTRA, name="last_hidden_state")
    kinds = [helper.make_tensor_value_info(name, TensorProto.INT32, ["N", "S"]) for name in inputs[:2] + inputs[-1:]]
    output = helper.make_tensor_value_info(network.last, TensorProto.FLOAT, ["N", "S", 16])
    graph = helper.make_graph(network.nodes, "reader", kinds, [output], network.constants)
    imports = [helper.make_opsetid("", 13), helper.make_opsetid(EXTRA, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)
