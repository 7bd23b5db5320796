"""Transformers of Hugging Face with tiny configurations: text and images."""

from pathlib import Path
from typing import Any

from tacit_lab.zoo.entry import Entry

TOKENS = 16
WORDS = {
    "vocab_size": 120,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
PATCHES = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "image_size": 32,
    "patch_size": 8,
}
HALF = {"embedding_size": 16}
TEXT: dict[str, dict[str, Any]] = {
    "Bert": WORDS,
    "DistilBert": {"vocab_size": 120, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "Albert": WORDS | HALF,
    "Electra": WORDS | HALF,
    "MPNet": WORDS,
    "Roberta": WORDS,
    "XLMRoberta": WORDS,
    "ModernBert": WORDS | {"pad_token_id": 0},
    "SqueezeBert": WORDS | {"embedding_size": 32},
}
"""Classifiers of text, and their configurations."""
IMAGES: dict[str, dict[str, Any]] = {
    "ViT": PATCHES,
    "Dinov2": {name: value for name, value in PATCHES.items() if name != "intermediate_size"},
    "Beit": PATCHES,
    "Swin": {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": [2, 2],
        "num_heads": [2, 4],
        "window_size": 4,
    },
}
"""Classifiers of images, and their configurations."""
PRIVATE = {"Bert", "DistilBert", "ViT"}


def build(name: str, kind: str, options: dict[str, Any]) -> Any:
    """A module of transformers, whose attention is written out."""
    import transformers

    config = getattr(transformers, f"{name}Config")(**options)
    config._attn_implementation = "eager"
    return getattr(transformers, f"{name}For{kind}Classification")(config)


def of_text(name: str, options: dict[str, Any]) -> Entry:
    """A classifier of text."""

    def make(path: Path) -> None:
        from tacit_lab.zoo.export import text

        text(lambda: build(name, "Sequence", options), TOKENS)(path)

    title = f"transformers-{name.lower()}"
    return Entry(title, "text", "transformers", "Apache-2.0", make, sequence=TOKENS, private=name in PRIVATE)


def of_images(name: str, options: dict[str, Any]) -> Entry:
    """A classifier of images."""

    def make(path: Path) -> None:
        from tacit_lab.zoo.export import Named, image

        image(lambda: Named(build(name, "Image", options)), (3, 32, 32))(path)

    return Entry(f"transformers-{name.lower()}", "vision", "transformers", "Apache-2.0", make, private=name in PRIVATE)


ENTRIES = (
    *(of_text(name, options) for name, options in TEXT.items()),
    *(of_images(name, options) for name, options in IMAGES.items()),
)
