"""Write what transformers computes with tiny models of random weights, for tests of the importers.

    pip install torch transformers
    python scripts/reference_encoders.py

writes tests/golden/encoders.json. Weights are drawn by their names (tests/drawn.py), so that only their shapes are
stored.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from drawn import GOLDEN, WORDS, Case, drawn, inputs  # noqa: E402

SIZES = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 24}
TEXT = SIZES | {"vocab_size": WORDS, "max_position_embeddings": 40, "pad_token_id": 1, "num_labels": 3}
IMAGE = SIZES | {"image_size": 8, "patch_size": 4, "num_labels": 3}
DISTILBERT = {"dim": 16, "n_heads": 2, "n_layers": 2, "hidden_dim": 24}
DEBERTA = {"relative_attention": True, "pos_att_type": "p2c|c2p"}
BUCKETS = {"position_buckets": 4, "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}
SWIN = {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [2, 1], "num_heads": [2, 2], "window_size": 4}
MODELS: dict[str, dict[str, Any]] = {
    "BertForSequenceClassification": TEXT,
    "BertForTokenClassification": TEXT,
    "BertForQuestionAnswering": TEXT | {"num_labels": 2},
    "RobertaForSequenceClassification": TEXT,
    "RobertaForTokenClassification": TEXT,
    "XLMRobertaModel": TEXT,
    "DistilBertForSequenceClassification": TEXT | DISTILBERT,
    "DistilBertForTokenClassification": TEXT | DISTILBERT,
    "DistilBertForQuestionAnswering": TEXT | DISTILBERT | {"num_labels": 2},
    "AlbertForSequenceClassification": TEXT | {"embedding_size": 8, "hidden_act": "gelu"},
    "ElectraModel": TEXT | {"embedding_size": 8},
    "ElectraForSequenceClassification": TEXT | {"embedding_size": 16},
    "MPNetModel": TEXT,
    "MPNetForSequenceClassification": TEXT,
    "DebertaV2Model": TEXT | DEBERTA | BUCKETS | {"type_vocab_size": 0},
    "DebertaV2ForSequenceClassification": TEXT | DEBERTA | {"pooler_hidden_size": 16, "type_vocab_size": 2},
    "ModernBertModel": TEXT | {"num_hidden_layers": 4, "local_attention": 4},
    "ModernBertForSequenceClassification": TEXT | {"norm_bias": True, "mlp_bias": True, "attention_bias": True},
    "ModernBertForTokenClassification": TEXT,
    "ViTModel": IMAGE,
    "ViTForImageClassification": IMAGE,
    "DeiTForImageClassificationWithTeacher": IMAGE,
    "CLIPVisionModelWithProjection": IMAGE | {"projection_dim": 8},
    "SwinForImageClassification": SWIN | {"mlp_ratio": 2.0, "num_labels": 3},
}


def computed(name: str, options: dict[str, Any], folder: Path) -> Case:
    """One model, run by transformers."""
    import torch
    import transformers
    from safetensors.numpy import load_file, save_file

    kind = getattr(transformers, name)
    kind(kind.config_class(**options)).save_pretrained(folder)
    shapes = {key: list(value.shape) for key, value in sorted(load_file(folder / "model.safetensors").items())}
    save_file(drawn(shapes), folder / "model.safetensors", metadata={"format": "pt"})
    model = kind.from_pretrained(folder, attn_implementation="eager").eval()
    config = model.config.to_diff_dict() | {"model_type": model.config.model_type, "architectures": [name]}
    config |= {key: options[key] for key in ("image_size", "pad_token_id") if key in options}
    x = torch.tensor(inputs(config))
    with torch.no_grad():
        if "image_size" in config:
            found = model(pixel_values=x)
        else:
            found = model(input_ids=x[:, 0].long(), attention_mask=x[:, 1].long())
    for role in ("transformers_version", "dtype", "id2label", "label2id"):
        config.pop(role, None)
    return Case(config, shapes, results(found))


def results(found: Any) -> np.ndarray:
    """The output that the importer gives."""
    if "start_logits" in found:
        return np.stack([found.start_logits.numpy(), found.end_logits.numpy()], axis=-1)
    role = next(role for role in ("logits", "image_embeds", "last_hidden_state") if role in found)
    return np.asarray(found[role].numpy())


def main() -> None:
    """Write all models, a line each."""
    lines = []
    for name, options in MODELS.items():
        with TemporaryDirectory() as folder:
            case = computed(name, options, Path(folder))
        outputs = np.round(case.outputs.astype(float), 5).tolist()
        entry = {"config": case.config, "outputs": outputs, "shapes": case.shapes}
        lines.append(f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}")
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
