"""What calibrates a decoder: prompts and answers, its whole embedding, and ranges with a margin."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from decoders import PREFIX, SUFFIX, directory
from tacit.compiler.clipping import MINMAX
from tacit.compiler.compiler import Options, begun
from tacit.compiler.quantize import calibrate
from tacit.compiler.reading import DECODER_MARGIN, Reading, describe, examples, margin, of_text
from tacit.data.text import Text
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Source
from tacit_lab.random_decoders import byte_tokenizer

SEQUENCE, TEXTS = 8, ["one", "seventeen sheep"]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Options, Source, Text]:
    """A small decoder as the compiler sees it."""
    source = directory(tmp_path_factory.mktemp("decoder") / "d")
    options = begun(source, Options(reading=Reading(SEQUENCE, texts=TEXTS, prefix=PREFIX, suffix=SUFFIX)))
    assert options.reading is not None
    graph = import_onnx(source, SEQUENCE, True, options.selection)
    return source, options, graph, describe(source, graph, options.reading)


def test_decoders_are_calibrated_with_prompts_and_answers(decoder: tuple[Path, Options, Source, Text]) -> None:
    text = decoder[3]
    assert text.decoding is not None
    encoder = byte_tokenizer()
    first = [*encoder.encode(f"one{SUFFIX}").ids, *encoder.encode("seve").ids]
    second = [*encoder.encode(f"seventeen sheep{SUFFIX}").ids, *encoder.encode("one").ids]
    answered = np.stack([text.decoding.placed(ids, SEQUENCE, text.pad) for ids in (first, second)])
    found = examples(text, TEXTS)
    assert (found[:2] == text.tokens(TEXTS).x).all()
    assert (found[2:] == text.inputs(answered)).all()


def test_the_range_of_the_input_is_that_of_all_tokens(decoder: tuple[Path, Options, Source, Text]) -> None:
    _, options, graph, text = decoder
    assert text.tables is not None
    words = text.tables.words
    assert of_text(options, graph, text, None)[2] == (float(words.min()), float(words.max()))


def test_ranges_of_decoders_have_a_margin(decoder: tuple[Path, Options, Source, Text]) -> None:
    source, _, graph, text = decoder
    x = examples(text, TEXTS)
    assert margin(text) == DECODER_MARGIN
    assert margin(None) == 1
    seen, wide = (calibrate(source, graph, x, None, replace(MINMAX, margin=by)).ranges for by in (1.0, 1.25))
    for name, ends in seen.items():
        by = 1 if name == graph.input_name else 1.25
        assert wide[name] == pytest.approx([end * by for end in ends])
