"""What architectures that read tokens have in common: the input, embeddings, the mask, and the registration.

Input `x` is float32 (N, 2, sequence): row 0 has token ids, row 1 the mask, 1 for a token and 0 for padding. Where the
embedding is public it is (N, width + 1, sequence): hidden states as `embed` gives them, and below them the mask.

Below the tokens or states of a decoder are 1 + prefix + sequence rows: one with a 1 at the last token, and for each
token which of the prefix and of all tokens it attends to, as (sequence, prefix + sequence) in the order of memory.
The input of a step, one token with states of earlier ones, is what `llama_step` says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from tacit.errors import MisuseError
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.heads import COMMON, RANKS, Head, Kind

MASKED = -1e4
"""Added to the scores of padding: e to this power is 0."""
PENALTY = "mask.scores"


class Tables(NamedTuple):
    """Embeddings: a norm of rows of `words` (V, width) plus `places` (positions, width), which may be None.

    `places` has positions and the first token type added up, beginning with the first token's; `norm` is the name
    of the norm's weights, which has no bias unless `biased`. None stands for no norm.
    """

    words: NDArray[np.float32]
    places: NDArray[np.float32] | None
    norm: str | None
    epsilon: float
    biased: bool = True

    def placed(self, sequence: int) -> NDArray[np.float32]:
        """What is added to the embeddings of `sequence` tokens."""
        shape = (sequence, self.words.shape[1])
        return np.zeros(shape, np.float32) if self.places is None else self.places[:sequence]


class Written(NamedTuple):
    """What layers are written for: the configuration, the length, and whether clients embed their tokens.

    Of decoders `beginning` are the tokens before those of the input: the server computes what is made of them. Where
    `context` is not 0, the input is one token, and states have keys and values of so many positions before it.
    """

    config: Config
    sequence: int
    public: bool = False
    beginning: tuple[int, ...] = ()
    context: int = 0


def unchanged(_config: Config, weights: Weights) -> Weights:
    """The weights as a directory has them."""
    return weights


@dataclass(frozen=True)
class TextArchitecture:
    """Models of one `model_type`.

    `prefix` is that of the weights in models with a head. `check` refuses configurations, `tables` gives the
    embeddings, `layers` writes everything from normalised embeddings (N, sequence, width) to states, and `heads` are
    those that other architectures do not have, of sequence classification at least. What `decodes` gives one state,
    that of the last token (N, 1, width). `prepare` gives the weights that all of these read, those of a model that
    says the same. `stepped` gives rows of a step's input between the embedding and the mask, where there are steps, and
    a model of `only_steps` has nothing else.
    """

    prefix: str
    check: Callable[[Config], None]
    tables: Callable[[Config, Weights], Tables]
    layers: Callable[[Graph, Written, str], str]
    heads: Callable[[Config], dict[Kind, Head]]
    decodes: bool = False
    prepare: Callable[[Config, Weights], Weights] = unchanged
    stepped: Callable[[Config], int] | None = None
    only_steps: bool = False


def write(architecture: TextArchitecture, written: Written, weights: Weights, kind: Kind, name: str) -> onnx.ModelProto:
    """The model; `weights` have their names without the prefix."""
    graph, (config, sequence, public, beginning) = Graph(weights), written[:4]
    graph.first()
    tables = sound(config, architecture.tables(config, weights), sequence)
    width = tables.words.shape[1]
    x = given_states(graph, width) if public else embed(graph, tables, given_ids(graph), sequence)
    above = width if public else 1
    if written.context and architecture.stepped is not None:
        return write_step(graph, architecture, written, (x, above + architecture.stepped(config)), (kind, name))
    row = graph.constant("mask.row", np.int64(above))
    mask = graph.add("Gather", "mask", "x", row, axis=1)
    masks = 1
    if architecture.decodes:
        masks += len(beginning) + sequence
        attended(graph, above + 1, sequence, len(beginning))
    else:
        penalise(graph, graph.add("Unsqueeze", "mask.keys", mask, graph.integers("mask.axes", [1, 2])))
    x = architecture.layers(graph, written, x)
    output = head_of(architecture, config, kind)(graph, x, mask)
    return graph.model(name, [above + masks, sequence], output, RANKS[kind], masks)


def write_step(
    graph: Graph, architecture: TextArchitecture, written: Written, given: tuple[str, int], made: tuple[Kind, str]
) -> onnx.ModelProto:
    """The model of one token with states: `given` are its embedding and the first row of the mask."""
    (x, first), (kind, name) = given, made
    masks = len(written.beginning) + written.context + 1
    attended(graph, first, 1, masks - 1)
    output = head_of(architecture, written.config, kind)(graph, architecture.layers(graph, written, x), PENALTY)
    return graph.model(name, [first + masks, 1], output, RANKS[kind], masks)


def head_of(architecture: TextArchitecture, config: Config, kind: Kind) -> Head:
    """What writes the head."""
    return (COMMON | architecture.heads(config))[kind]


def sound(config: Config, tables: Tables, sequence: int) -> Tables:
    """The tables, which must have a position for every token."""
    if tables.words.ndim != 2:
        raise MisuseError(f"{config.folder}: the word embeddings have shape {list(tables.words.shape)}")
    if tables.places is not None and tables.places.shape[1:] != tables.words.shape[1:]:
        found = f"{list(tables.places.shape)} beside {list(tables.words.shape)} of words"
        raise MisuseError(f"{config.folder}: the position embeddings have shape {found}")
    most = len(tables.places) if tables.places is not None else config.whole("max_position_embeddings", 512)
    if not 1 <= sequence <= most:
        raise MisuseError(f"{config.folder}: --sequence must be from 1 to {most}, the positions the model has")
    return tables


def given_ids(graph: Graph) -> str:
    """Tokens (N, sequence) of the input."""
    return graph.add("Cast", "ids", graph.row("ids.float", "x", 0), to=TensorProto.INT64)


def given_states(graph: Graph, width: int) -> str:
    """Hidden states (N, sequence, width) of the input."""
    ends = [graph.integers(f"states.{role}", [value]) for role, value in (("first", 0), ("end", width))]
    rows = graph.add("Slice", "states.rows", "x", *ends, graph.integers("states.axis", [1]))
    return graph.add("Transpose", "states", rows, perm=[0, 2, 1])


def embed(graph: Graph, tables: Tables, ids: str, sequence: int) -> str:
    """Embeddings of tokens, positions and the first token type, normalised."""
    x = graph.add("Gather", "embedding", graph.constant("embedding.weight", tables.words), ids, axis=0)
    if tables.places is not None:
        x = graph.add("Add", "embedding.placed", x, graph.constant("embedding.positions", tables.placed(sequence)))
    if tables.norm is None:
        return x
    return graph.normalise("embedding.norm", x, tables.norm, tables.epsilon, tables.biased)


def penalise(graph: Graph, mask: str) -> str:
    """What is added to scores, named `PENALTY`: 0 where the mask is 1, `MASKED` where it is 0; of the mask's shape."""
    absent = graph.add("Sub", "mask.absent", graph.constant("mask.one", np.float32(1)), mask)
    return graph.add("Mul", PENALTY, absent, graph.constant("mask.penalty", np.float32(MASKED)))


def attended(graph: Graph, first: int, sequence: int, beginning: int) -> str:
    """`PENALTY` (N, 1, sequence, beginning + sequence) of a decoder, by the rows of the input from `first` on."""
    ends = [graph.integers(f"mask.rows.{role}", [at]) for role, at in (("first", first), ("end", 1 << 30))]
    rows = graph.add("Slice", "mask.rows", "x", *ends, graph.integers("mask.rows.axis", [1]))
    shape = graph.integers("mask.rows.shape", [0, 1, sequence, beginning + sequence])
    return penalise(graph, graph.add("Reshape", "mask.keys", rows, shape))
