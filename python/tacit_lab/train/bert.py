"""BERT with a classifier in PyTorch, from and to directories of Hugging Face; GELU and softmax may be the unified ones.

The modules are nested as the weights are named. Token types are all 0, as in what Tacit compiles.
"""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from tacit_lab.train.functions import EPSILON, Smooth, relu_softmax, smu

ACTIVATION = (0.0, 1.0)
"""Slope and smoothness that the unified activation starts with."""
ATTENTION = 1.0
"""Smoothness that the unified softmax starts with."""
NEEDED = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json")
HEAD = ("pooler.", "classifier.")
"""Weights that an encoder may lack."""
Configuration = dict[str, Any]


@dataclass
class Seen:
    """What a run computed on its way: states of all tokens by layer, and arguments of the unified functions."""

    states: list[Tensor] = field(default_factory=list)
    activations: list[Tensor] = field(default_factory=list)
    scores: list[Tensor] = field(default_factory=list)
    sums: list[Tensor] = field(default_factory=list)
    norms: list[Tensor] = field(default_factory=list)


def dense(inputs: int, outputs: int, epsilon: float) -> nn.ModuleDict:
    """A dense layer and the norm after it."""
    return nn.ModuleDict({"dense": nn.Linear(inputs, outputs), "LayerNorm": nn.LayerNorm(outputs, eps=epsilon)})


class Layer(nn.Module):
    """Attention, then the two dense layers."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        hidden, wide, epsilon = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        self.heads, self.dropout = config["num_attention_heads"], config.get("hidden_dropout_prob", 0.0)
        projections = nn.ModuleDict({name: nn.Linear(hidden, hidden) for name in ("query", "key", "value")})
        self.attention = nn.ModuleDict({"self": projections, "output": dense(hidden, hidden, epsilon)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(hidden, wide)})
        self.output = dense(wide, hidden, epsilon)
        self.activation: Smooth | None = None
        self.softmax: Smooth | None = None

    def forward(self, x: Tensor, mask: Tensor, seen: Seen) -> Tensor:
        """States (N, tokens, hidden) to states; the mask is (N, 1, 1, tokens)."""
        x = self.joined(self.attention["output"], self.context(x, mask, seen), x, seen)
        wide = self.intermediate["dense"](x)
        seen.activations.append(wide)
        smooth = self.activation
        if smooth is None:
            active = functional.gelu(wide)
        else:
            active = smu(wide.float(), smooth.slope, smooth.smoothness).to(wide.dtype)
        x = self.joined(self.output, active, x, seen)
        seen.states.append(x)
        return x

    def context(self, x: Tensor, mask: Tensor, seen: Seen) -> Tensor:
        """What all heads attend to, side by side."""
        n, tokens, hidden = x.shape
        query, key, value = (
            self.attention["self"][name](x).view(n, tokens, self.heads, -1).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = (query @ key.transpose(2, 3)).float() * (hidden // self.heads) ** -0.5
        seen.scores.append(scores)
        if self.softmax is None:
            weights = torch.softmax(scores + (mask - 1) * 1e4, dim=-1)
        else:
            weights = relu_softmax(scores, mask, self.softmax.smoothness)
        joined: Tensor = (weights.to(value.dtype) @ value).transpose(1, 2).reshape(n, tokens, hidden)
        return joined

    def joined(self, part: nn.Module, x: Tensor, before: Tensor, seen: Seen) -> Tensor:
        """The dense layer of a `part`, what was there before, and the norm."""
        assert isinstance(part, nn.ModuleDict)
        total = functional.dropout(part["dense"](x), self.dropout, self.training) + before
        seen.norms.append(total)
        normalised: Tensor = part["LayerNorm"](total)
        return normalised


class Classifier(nn.Module):
    """Embeddings, layers, pooler, classifier. One class is a number to be estimated."""

    def __init__(self, config: Configuration, classes: int) -> None:
        super().__init__()
        self.config, hidden = config, config["hidden_size"]
        tables = {
            "word_embeddings": nn.Embedding(config["vocab_size"], hidden),
            "position_embeddings": nn.Embedding(config["max_position_embeddings"], hidden),
            "token_type_embeddings": nn.Embedding(config["type_vocab_size"], hidden),
            "LayerNorm": nn.LayerNorm(hidden, eps=config["layer_norm_eps"]),
        }
        layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.embeddings = nn.ModuleDict(tables)
        self.encoder = nn.ModuleDict({"layer": layers})
        self.pooler = nn.ModuleDict({"dense": nn.Linear(hidden, hidden)})
        self.classifier = nn.Linear(hidden, classes)

    def layers(self) -> list[Layer]:
        """The layers in order."""
        return [layer for layer in self.encoder["layer"].children() if isinstance(layer, Layer)]

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Seen]:
        """Logits (N, classes) of tokens and their mask, both (N, tokens), and what was seen on the way."""
        seen, tables = Seen(), self.embeddings
        places = torch.arange(ids.shape[1])
        x = tables["word_embeddings"](ids) + tables["position_embeddings"](places)
        x = x + tables["token_type_embeddings"].weight[0]
        seen.norms.append(x)
        x, spread = tables["LayerNorm"](x), mask[:, None, None, :].float()
        for layer in self.layers():
            x = layer(x, spread, seen)
        pooled = torch.tanh(self.pooler["dense"](x[:, 0]))
        return self.classifier(pooled), seen

    def unify(self, activation: bool = True, attention: bool = True) -> None:
        """Put the unified functions in the place of those that are not unified yet."""
        for layer in self.layers():
            if activation and layer.activation is None:
                layer.activation = Smooth(*ACTIVATION)
            if attention and layer.softmax is None:
                layer.softmax = Smooth(0.0, ATTENTION)
                layer.softmax.slope.requires_grad_(False)

    def smooth(self) -> list[Smooth]:
        """The numbers of all unified functions."""
        return [part for layer in self.layers() for part in (layer.activation, layer.softmax) if part is not None]

    def described(self) -> Configuration:
        """The configuration of the model as it is now."""
        config = {**self.config, "architectures": ["BertForSequenceClassification"]}
        activations = [layer.activation for layer in self.layers()]
        softmaxes = [layer.softmax for layer in self.layers()]
        if all(activations):
            pairs = [[part.slope.item(), part.smoothness.item()] for part in activations if part is not None]
            config |= {"hidden_act": "smu", "smu": pairs}
        if all(softmaxes):
            pairs = [[part.smoothness.item(), EPSILON] for part in softmaxes if part is not None]
            config |= {"attention": "relu-softmax", "relu_softmax": pairs}
        return config


def load(folder: Path, labels: tuple[str, ...]) -> Classifier:
    """The model in `folder` with a classifier for `labels`; one that it has already is kept if it fits."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"id2label": {str(i): name for i, name in enumerate(labels)}, "num_labels": len(labels)}
    config["label2id"] = {name: i for i, name in enumerate(labels)}
    stored = {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}
    stored.pop("embeddings.position_ids", None)
    for size, table in (("max_position_embeddings", "position"), ("type_vocab_size", "token_type")):
        config[size] = len(stored[f"embeddings.{table}_embeddings.weight"])
    model = Classifier(config, len(labels))
    fresh = {name: value for name, value in model.state_dict().items() if name.startswith(HEAD)}
    fits = {name: value for name, value in stored.items() if name not in fresh or value.shape == fresh[name].shape}
    model.load_state_dict({**fresh, **fits})
    restore(model, config)
    return model


def restore(model: Classifier, config: Configuration) -> None:
    """Unified functions with the numbers that the configuration has."""
    for index, layer in enumerate(model.layers()):
        if config.get("hidden_act") == "smu":
            layer.activation = Smooth(*config["smu"][index])
        if config.get("attention") == "relu-softmax":
            layer.softmax = Smooth(0.0, config["relu_softmax"][index][0])
            layer.softmax.slope.requires_grad_(False)


def save(model: Classifier, folder: Path, source: Path) -> None:
    """Write the model as a directory of Hugging Face; the tokenizer is that of `source`. Files change as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    own = (".activation.", ".softmax.")
    weights = {name: value for name, value in model.state_dict().items() if not any(part in name for part in own)}
    prefixed = {name if name.startswith("classifier.") else f"bert.{name}": value for name, value in weights.items()}
    save_file(prefixed, folder / "model.part", metadata={"format": "pt"})
    (folder / "model.part").replace(folder / "model.safetensors")
    text = json.dumps(model.described(), indent=2) + "\n"
    (folder / "config.part").write_text(text, encoding="utf-8")
    (folder / "config.part").replace(folder / "config.json")
    for name in NEEDED:
        if (source / name).is_file() and not (folder / name).exists():
            shutil.copy(source / name, folder / name)
