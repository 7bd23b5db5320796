"""Architectures that are written as ONNX models from a configuration and weights, by `model_type`.

An architecture is one module and one line here.
"""

from collections.abc import Mapping

from tacit.importers.architectures.albert import ALBERT
from tacit.importers.architectures.bert import BERT, DISTILBERT, ROBERTA
from tacit.importers.architectures.clip import CLIP_VISION
from tacit.importers.architectures.deberta import DEBERTA
from tacit.importers.architectures.electra import ELECTRA
from tacit.importers.architectures.gpt2 import GPT2
from tacit.importers.architectures.image import ImageArchitecture
from tacit.importers.architectures.llama import LLAMA
from tacit.importers.architectures.modernbert import MODERNBERT
from tacit.importers.architectures.mpnet import MPNET
from tacit.importers.architectures.swin import SWIN
from tacit.importers.architectures.text import TextArchitecture
from tacit.importers.architectures.vit import DEIT, VIT

TEXTS: Mapping[str, TextArchitecture] = {
    "albert": ALBERT,
    "bert": BERT,
    "camembert": ROBERTA,
    "deberta-v2": DEBERTA,
    "distilbert": DISTILBERT,
    "electra": ELECTRA,
    "gpt2": GPT2,
    "llama": LLAMA,
    "modernbert": MODERNBERT,
    "mpnet": MPNET,
    "qwen2": LLAMA,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
}
IMAGES: Mapping[str, ImageArchitecture] = {
    "clip_vision_model": CLIP_VISION,
    "deit": DEIT,
    "swin": SWIN,
    "vit": VIT,
}
INSTEAD: Mapping[str, str] = {
    "clip": "save the half that reads pictures: CLIPVisionModelWithProjection.from_pretrained(..).save_pretrained(..)",
    "clip_text_model": "its embedding is that of a text's last token, whose place is secret: use a sentence model",
}
"""What to do about models that are not supported though parts of them are, or that are often asked for."""
