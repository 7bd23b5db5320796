"""Labels of words, and answers, out of numbers per token."""

import json
from dataclasses import replace

import numpy as np
import pytest
from encoders import write_tokenizer
from tacit.cli.results import show_results
from tacit.data.answers import Answer, Word, answer, words
from tacit.data.inputs import Inputs
from tacit.data.text import Text, from_json
from tacit.errors import MisuseError
from tacit.report import sentences

SEQUENCE = 8
LABELS = ("O", "ANIMAL")


@pytest.fixture
def reading(tmp_path):
    path = tmp_path / "tokenizer.json"
    write_tokenizer(path)
    return Text(path.read_text(), SEQUENCE, "tokens", labels=LABELS)


def per_token(*chosen):
    """Numbers (sequence, 2) that choose a class for each token."""
    return np.eye(2)[[*chosen, *[0] * (SEQUENCE - len(chosen))]]


def test_words_have_the_labels_of_their_tokens(reading):
    values = per_token(1, 0, 1, 0, 0, 1)  # the first token and the last one are marks
    expected = ["O", "ANIMAL", "O", "O", "ANIMAL"]
    found = words(reading, "The cat sees a fish", values)
    assert found == [
        Word(word, label) for word, label in zip(["The", "cat", "sees", "a", "fish"], expected, strict=True)
    ]
    numbered = words(replace(reading, labels=()), "The cat", values)
    assert [word.label for word in numbered] == ["0", "1"]


def test_words_beside_the_model_have_no_label(reading):
    assert len(words(reading, "the cat sees a fish and the dog sees a ball", per_token())) == SEQUENCE - 2


def test_an_answer_is_a_part_of_the_second_text(reading):
    spans, pair = replace(reading, pooling="spans", sequence=16), "the dog\tThe cat sees a fish"
    encoding = spans.encoded(pair)
    inside = [index for index, part in enumerate(encoding.sequence_ids) if part == 1]
    values = np.zeros((16, 2))
    values[inside[1], 0] = values[inside[2], 1] = 2.0
    values[1] = 9.0  # the question is no answer
    values[inside[4], 0] = 3.0  # what starts behind its end is none either
    assert answer(spans, pair, values) == Answer("cat sees", 4, 12, 4.0)
    nothing = answer(spans, "\t", values)
    assert nothing == Answer("", 0, 0, -np.inf)
    assert nothing.content() == {"answer": "", "start": 0, "end": 0, "score": None}


def test_commands_say_them(reading, capsys):
    names = ["the cat"]
    tokens = reading.tokens(names)
    given, values = Inputs(tokens.x, None, names, tokens.lengths), per_token(0, 0, 1).reshape(1, -1)
    content = sentences.content(reading, given, values)
    assert content["words"] == [[{"word": "the", "label": "O"}, {"word": "cat", "label": "ANIMAL"}]]
    show_results(given, reading, np.zeros(1, np.int64), values, [], (SEQUENCE, 2))
    assert "the [O] cat [ANIMAL]" in capsys.readouterr().out
    spans = replace(reading, pooling="spans")
    (found,) = sentences.content(spans, given, per_token(0, 0, 1).reshape(1, -1))["answers"]
    assert set(found) == {"answer", "start", "end", "score"}
    assert "words" not in sentences.content(reading, given._replace(lengths=None), values)


def test_labels_are_kept_in_files(reading):
    assert from_json(reading.to_json()) == reading
    assert "labels" not in json.loads(replace(reading, labels=()).to_json())
    with pytest.raises(MisuseError, match="labels"):
        from_json(json.dumps({**json.loads(reading.to_json()), "labels": [1]}))
