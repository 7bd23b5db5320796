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
SMALL = {"image_size": 32, "patch_size": 2}
STAGES = {"hidden_sizes": [16, 32], "depths": [2, 2]}
PYRAMID = {"hidden_sizes": [16, 32, 32, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 2]}
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
    "Deberta": WORDS,
    "DebertaV2": WORDS,
    "RemBert": WORDS,
    "RoFormer": WORDS,
    "ConvBert": WORDS | HALF,
    "MegatronBert": WORDS,
    "RobertaPreLayerNorm": WORDS,
    "Nystromformer": WORDS,
    "LayoutLM": WORDS,
    "BigBird": WORDS | {"attention_type": "original_full"},
    "Esm": WORDS | {"pad_token_id": 0, "mask_token_id": 2},
}
"""Classifiers of text, and their configurations."""
IMAGES: dict[str, dict[str, Any]] = {
    "ViT": PATCHES,
    "Dinov2": {name: value for name, value in PATCHES.items() if name != "intermediate_size"},
    "Beit": PATCHES,
    "Swin": SMALL | {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
    "DeiT": PATCHES,
    "ViTMSN": PATCHES,
    "IJepa": PATCHES,
    "ConvNext": STAGES | {"num_stages": 2, "image_size": 32},
    "ConvNextV2": STAGES | {"num_stages": 2, "image_size": 32},
    "ResNet": STAGES | {"embedding_size": 16, "layer_type": "basic"},
    "RegNet": STAGES | {"embedding_size": 16, "groups_width": 8},
    "Bit": STAGES | {"embedding_size": 16, "num_groups": 4},
    "PoolFormer": STAGES | {"patch_sizes": [7, 3], "strides": [4, 2], "padding": [2, 1], "num_encoder_blocks": 2},
    "FocalNet": STAGES | SMALL | {"embed_dim": 16, "focal_levels": [2, 2], "focal_windows": [3, 3]},
    "Segformer": PYRAMID | {"decoder_hidden_size": 32},
    "PvtV2": PYRAMID | {"image_size": 32},
}
"""Classifiers of images, and their configurations."""
PRIVATE = {"Bert", "DistilBert", "ViT", "DebertaV2", "ConvNext", "PoolFormer"}


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
