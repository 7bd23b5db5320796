"""What a config.json says, read with care: whatever is no number or not supported is refused by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from tacit.errors import MisuseError, UnsupportedError

Activation = Literal["Gelu", "Relu", "Smu"]
ACTIVATIONS: Mapping[str, Activation] = {
    "gelu": "Gelu",
    "gelu_new": "Gelu",
    "gelu_fast": "Gelu",
    "gelu_pytorch_tanh": "Gelu",
    "relu": "Relu",
    "smu": "Smu",
}
ALIASES: Mapping[str, str] = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
    "rms_norm_eps": "layer_norm_epsilon",
}
"""What GPT-2 calls fields that decoders have."""


@dataclass(frozen=True)
class Config:
    """The fields of the configuration in `folder`."""

    folder: Path
    fields: Mapping[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        """A field as it stands, by its own name or its alias; `default` where it is absent or null."""
        value = self.fields.get(name)
        if value is None and name in ALIASES:
            value = self.fields.get(ALIASES[name])
        return default if value is None else value

    def whole(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A number of the configuration, `least` or more."""
        value = self.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 1 << 20:
            raise MisuseError(f"{self.folder}: `{name}` in config.json is no number from {least} to {1 << 20}")
        return value

    def real(self, name: str, default: float) -> float:
        """A positive real number."""
        value = self.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e9:
            raise MisuseError(f"{self.folder}: `{name}` in config.json is no number above 0")
        return float(value)

    def choice(self, name: str, allowed: Sequence[Any], default: Any) -> Any:
        """A field that must have one of a few values."""
        value = self.get(name, default)
        if value not in allowed:
            self.refuse(f"{name} `{value}`", f"use {' or '.join(f'`{known}`' for known in allowed)}")
        return value

    def activation(self, name: str, default: str = "gelu") -> Activation:
        """The function between two dense layers."""
        value = self.get(name, default)
        if value not in ACTIVATIONS:
            self.refuse(f"{name} `{value}`", f"use one of {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[value]

    def divided(self, whole: str, parts: str) -> tuple[int, int]:
        """Two numbers, the first of which is a multiple of the second."""
        size, count = self.whole(whole), self.whole(parts)
        if size % count:
            raise MisuseError(f"{self.folder}: {whole} is no multiple of {parts} in config.json")
        return size, count

    def architecture(self) -> str:
        """The class that the model was saved from."""
        return str((self.get("architectures") or ["Model"])[0])

    def encodes(self) -> None:
        """Refuse decoders."""
        if self.get("is_decoder") or self.get("add_cross_attention"):
            self.refuse("a decoder (is_decoder)", "use an encoder")

    def damaged(self, what: str) -> NoReturn:
        """Raise `MisuseError` about the directory."""
        raise MisuseError(f"{self.folder}: {what}")

    def unsupported(self, what: str, instead: str) -> UnsupportedError:
        """What to raise about the configuration."""
        return UnsupportedError(f"{self.folder}: {what} is not supported; {instead}")

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Raise it."""
        raise self.unsupported(what, instead)
