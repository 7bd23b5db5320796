"""DeBERTa, versions 2 and 3: scores also have products of states with embeddings of distances.

Keys of distances are constants, so that the product of queries with them is a dense layer with one output per head and
distance; which of them belongs to a key is a matter of order.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures import bert, heads, post_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.post_norm import Encoder, Names
from tacit.importers.architectures.text import Tables, TextArchitecture, Written

NAMES = Names(
    query="encoder.layer.{}.attention.self.query_proj",
    key="encoder.layer.{}.attention.self.key_proj",
    value="encoder.layer.{}.attention.self.value_proj",
    attended=post_norm.BERT.attended,
    first_norm=post_norm.BERT.first_norm,
    wide=post_norm.BERT.wide,
    narrow=post_norm.BERT.narrow,
    second_norm=post_norm.BERT.second_norm,
)
Array = NDArray[np.float32]


def kinds(config: Config) -> list[str]:
    """Which products with distances there are: of queries (c2p), of keys (p2c)."""
    given = config.get("pos_att_type", [])
    found = given.split("|") if isinstance(given, str) else list(given)
    unknown = [kind for kind in found if kind not in ("c2p", "p2c")]
    if unknown:
        config.refuse(f"pos_att_type `{unknown[0]}`", "use `c2p` and `p2c`")
    return found


def describe(config: Config) -> Encoder:
    """The encoder."""
    config.choice("relative_attention", [True], False)
    config.choice("conv_kernel_size", [0], 0)
    size, heads_ = config.divided("hidden_size", "num_attention_heads")
    config.choice("attention_head_size", [size // heads_], size // heads_)
    config.choice("embedding_size", [size], size)
    return post_norm.describe(config, NAMES, parts=1 + len(kinds(config)))


def check(config: Config) -> None:
    """Refuse convolutions, and DeBERTa without distances."""
    describe(config)


def tables(config: Config, weights: Weights) -> Tables:
    """Words, and positions and token types where the model has them."""
    table = bert.words(config, weights, config.whole("hidden_size"))
    places: Array | None = None
    if config.get("position_biased_input", True):
        places = weights["embeddings.position_embeddings.weight"]
    if "embeddings.token_type_embeddings.weight" in weights:
        none = np.zeros((config.whole("max_position_embeddings", 512), table.shape[1]), np.float32)
        places = (none if places is None else places) + weights["embeddings.token_type_embeddings.weight"][0]
    return Tables(table, places, "embeddings.LayerNorm", config.real("layer_norm_eps", 1e-7))


def rows(config: Config, sequence: int) -> NDArray[np.int64]:
    """The row of the table of distances for each distance from 1 - sequence to sequence - 1."""
    buckets, span = config.get("position_buckets", -1), config.get("max_relative_positions", -1)
    most = span if span > 0 else config.whole("max_position_embeddings", 512)
    distance = np.arange(1 - sequence, sequence)
    if buckets <= 0:
        return np.clip(distance + most, 0, 2 * most - 1).astype(np.int64)
    middle = buckets // 2
    far = np.maximum(np.abs(distance), middle).astype(np.float32)
    logarithm = np.log(far / np.float32(middle)) / np.log(np.float32((most - 1) / middle))
    large = np.ceil(logarithm * (middle - 1)).astype(np.int64) + middle
    near = np.where(np.abs(distance) <= middle, distance, large * np.sign(distance))
    found: NDArray[np.int64] = np.clip(near + buckets, 0, 2 * buckets - 1)
    return found


def distances(config: Config, weights: Weights, sequence: int) -> Array:
    """An embedding (2 sequence - 1, hidden) of each distance."""
    table = weights["encoder.rel_embeddings.weight"]
    if "layer_norm" in str(config.get("norm_rel_ebd", "none")):
        centred = table - table.mean(axis=1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + config.real("layer_norm_eps", 1e-7))
        table = centred / deviation * weights["encoder.LayerNorm.weight"] + weights["encoder.LayerNorm.bias"]
    found: Array = table[rows(config, sequence)].astype(np.float32)
    return found


def related(weights: Weights, encoder: Encoder, position: str, embedded: Array) -> Array:
    """Weight (heads distances, hidden) of the products of queries or keys with a projection of the distances.

    Each head has its own block; all else is 0.
    """
    heads_, width = encoder.heads, encoder.hidden // encoder.heads
    projected = embedded @ weights[f"{position}.weight"].T + weights[f"{position}.bias"]
    split = projected.reshape(-1, heads_, width)
    found = np.zeros((heads_, len(embedded), heads_, width), np.float32)
    for head in range(heads_):
        found[head, :, head] = split[:, head]
    return found.reshape(-1, encoder.hidden)


def by_token(graph: Graph, at: str, x: str, heads_: int, sequence: int) -> str:
    """Products (N, sequence, heads distances) as (N, heads, sequence, other token).

    Row i needs the distances from sequence - 1 - i on: read as rows that are one shorter, these begin below each other.
    """
    count = 2 * sequence - 1
    split = graph.heads(at, x, [0, -1, heads_, count], [0, 2, 1, 3])
    flat = graph.add("Reshape", f"{at}.flat", split, graph.integers("relative.flat", [0, heads_, sequence * count]))
    skipped = sliced(graph, f"{at}.skipped", flat, 2, (sequence - 1, sequence - 1 + sequence * (count - 1)))
    shape = graph.integers("relative.rows", [0, heads_, sequence, count - 1])
    rows_ = graph.add("Reshape", f"{at}.rows", skipped, shape)
    return sliced(graph, f"{at}.scores", rows_, 3, (0, sequence))


def sliced(graph: Graph, name: str, x: str, axis: int, ends: tuple[int, int]) -> str:
    """Elements between both `ends` of an axis."""
    bounds = [
        graph.integers(f"relative.{role}{value}", [value]) for role, value in zip(("from", "to"), ends, strict=True)
    ]
    return graph.add("Slice", name, x, *bounds, graph.integers(f"relative.at{axis}", [axis]))


def layers(graph: Graph, written: Written, x: str) -> str:
    """All layers, with products of distances."""
    config, sequence = written.config, written.sequence
    embedded, shared = distances(config, graph.weights, sequence), bool(config.get("share_att_key", False))

    def one(graph: Graph, encoder: Encoder, layer: int, kind: str) -> str:
        names, at, of_queries = encoder.names.of(layer), f"layer{layer}.{kind}", kind == "c2p"
        own = f"encoder.layer.{layer}.attention.self.pos_{'key' if of_queries else 'query'}_proj"
        other = names.key if of_queries else names.query
        # The table has distances from key to query; queries need them the other way round.
        table = embedded[::-1] if of_queries else embedded
        weight = related(graph.weights, encoder, other if shared else own, table)
        # Queries are scaled already.
        content = f"layer{layer}.query.scaled" if of_queries else f"layer{layer}.key"
        products = graph.linear(at, content, weight if of_queries else weight * np.float32(encoder.factor), None)
        found = by_token(graph, at, products, encoder.heads, sequence)
        return found if of_queries else graph.add("Transpose", f"{at}.turned", found, perm=[0, 1, 3, 2])

    def term(graph: Graph, encoder: Encoder, layer: int) -> str:
        found = [one(graph, encoder, layer, kind) for kind in kinds(config)]
        return graph.add("Add", f"layer{layer}.related", *found) if len(found) == 2 else found[0]

    return post_norm.layers(graph, replace(describe(config), term=term) if kinds(config) else describe(config), x)


def own_heads(config: Config) -> dict[heads.Kind, heads.Head]:
    """A pooler and a classifier."""
    activation = config.activation("pooler_hidden_act")
    return {"classes": heads.Classifier("pooler.dense", activation, "classifier", "pooler.dense")}


DEBERTA = TextArchitecture("deberta.", check, tables, layers, own_heads)
