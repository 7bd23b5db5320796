"""Text: tokens and their mask, embeddings, and files of both."""

import json

import numpy as np
import pytest
from encoders import write_tokenizer
from tacit.data import corpus, text
from tacit.data.inputs import Wanted, read
from tacit.data.text import Text, bucket, cosines, rank, spearman
from tacit.errors import MisuseError


@pytest.fixture
def reading(tmp_path):
    path = tmp_path / "tokenizer.json"
    write_tokenizer(path)
    return Text(path.read_text(), 8, "mean", normalise=True)


def test_tokens_stand_above_their_mask(reading):
    tokens = reading.tokens(["The cat sees a fish", "dog"])
    assert tokens.x.dtype == np.float32
    np.testing.assert_array_equal(tokens.x[1], [[2, 8, 3, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(tokens.x[0, 1], [1] * 7 + [0])
    assert tokens.lengths.tolist() == [7, 3]
    assert reading.too_long(tokens.lengths) == []


def test_what_is_too_long_is_cut_before_its_last_mark_and_told(reading):
    tokens = reading.tokens(["the cat sees a fish and the dog sees a ball and the man eats the fish in red"])
    assert tokens.x[0, 0, -1] == 3
    assert (tokens.x[0, 1] == 1).all()
    (warning,) = reading.too_long(tokens.lengths)
    assert "text 1 has 21 tokens" in warning
    assert "--sequence 32" in warning


def test_the_filling_token_is_that_of_the_model(reading):
    filled = Text(reading.tokenizer, 4, "cls", pad=1)
    assert filled.tokens(["dog"]).x[0].tolist() == [[2, 8, 3, 1], [1, 1, 1, 0]]


@pytest.mark.parametrize(("length", "expected"), [(1, 16), (16, 16), (17, 32), (32, 32), (33, 64), (512, 512)])
def test_buckets_are_powers_of_two(length, expected):
    assert bucket(length) == expected


def test_embeddings_by_pooling(reading):
    x = reading.tokens(["dog", "the cat sees"]).x
    outputs = np.array([[3.0, 4.0], [0.0, 5.0]])
    np.testing.assert_allclose(reading.embeddings(outputs, x), [[0.6, 0.8], [0, 1]])
    plain = Text(reading.tokenizer, 8, "mean")
    np.testing.assert_allclose(plain.embeddings(outputs, x), [[1, 4 / 3], [0, 1]])
    states = np.arange(32, dtype=np.float64).reshape(2, 16)
    hidden = Text(reading.tokenizer, 8, "hidden").embeddings(states, x)
    np.testing.assert_allclose(hidden, [[2, 3], [20, 21]])
    np.testing.assert_array_equal(Text(reading.tokenizer, 8, "cls").embeddings(outputs, x), outputs)
    assert Text(reading.tokenizer, 8, "classes").embeddings(outputs, x) is None


def test_the_file_for_clients(reading, tmp_path):
    path = tmp_path / "x.text"
    text.write(path, reading)
    assert text.read(path) == reading
    with pytest.raises(MisuseError, match="does not exist"):
        text.read(tmp_path / "absent.text")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(MisuseError, match="readable header"):
        text.read(path)


WRONG = {
    "sequence": {"sequence": 0},
    "pooling": {"pooling": "max"},
    "normalise": {"normalise": 1},
    "pad": {"pad": -1},
    "tokenizer": {"tokenizer": 3},
    "fields": {"other": 3},
}


@pytest.mark.parametrize("case", WRONG)
def test_fields_that_are_wrong(case):
    content = {"tokenizer": "{}", "sequence": 8, "pooling": "cls"} | WRONG[case]
    with pytest.raises(MisuseError, match=case):
        text.from_json(json.dumps(content))


@pytest.mark.parametrize("content", ["", "[]", '{"sequence": 8}'])
def test_content_that_is_no_text(content):
    with pytest.raises(MisuseError, match="text: "):
        text.from_json(content)


def test_a_tokenizer_that_is_none():
    with pytest.raises(MisuseError, match="tokenizer is not readable"):
        Text("{}", 8, "cls").tokens(["dog"])


def test_ranks_and_correlations():
    np.testing.assert_array_equal(rank(np.array([3.0, 1.0, 3.0, 2.0])), [3.5, 1, 3.5, 2])
    series = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert spearman(series, series**3) == pytest.approx(1)
    assert spearman(series, np.array([2.0, 1.0, 4.0, 3.0, 5.0])) == pytest.approx(0.8)
    assert spearman(series, np.ones(5)) is None
    np.testing.assert_allclose(
        cosines(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 0.0]])), [0.5**0.5, 0]
    )


def test_pairs_share_their_texts(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("sentence1\tsentence2\tscore\na dog\ta cat\t1.5\na cat\ta fish\t2\na dog\ta fish\t0\n")
    pairs = corpus.load(path)
    assert pairs.texts == ("a dog", "a cat", "a fish")
    assert pairs.pairs is not None
    assert pairs.pairs.tolist() == [[0, 1], [1, 2], [0, 2]]
    assert pairs.scores is not None
    assert pairs.scores.tolist() == [1.5, 2, 0]
    first = pairs.first(1)
    assert (first.texts, first.pairs.tolist(), first.scores.tolist()) == (("a dog", "a cat"), [[0, 1]], [1.5])


def test_lines_and_labels(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("a dog\n\n  a cat \n")
    assert corpus.load(lines).texts == ("a dog", "a cat")
    table = tmp_path / "table.tsv"
    table.write_text("sentence\tlabel\na dog\t1\na cat\t0\n")
    assert corpus.load(table).labels.tolist() == [1, 0]
    assert corpus.load(table).first(1).texts == ("a dog",)


def test_pairs_that_are_read_together(tmp_path, reading):
    path = tmp_path / "pairs.tsv"
    path.write_text("sentence1\tsentence2\tlabel\na dog\ta cat\tother\na cat\ta cat\tsame\n")
    pairs = corpus.load(path, ("same", "other"))
    assert pairs.labels.tolist() == [1, 0]
    assert pairs.inputs(True) == ("a dog\ta cat", "a cat\ta cat")
    assert pairs.inputs(False) == ("a dog", "a cat")
    assert pairs.first(1).labels.tolist() == [1]
    assert corpus.load(path).labels is None
    with pytest.raises(MisuseError, match="label `other` is none of same, different"):
        corpus.load(path, ("same", "different"))
    tokens = reading.tokens(["a dog\ta cat"])
    assert tokens.x[0, 0].tolist() == [2, 4, 8, 3, 4, 9, 3, 0]
    with pytest.raises(MisuseError, match="2 tabs"):
        reading.tokens(["a\tb\tc"])


BROKEN = {
    "empty.txt": (b"", "no text"),
    "bytes.txt": (b"\xff\xfe\xff", "UTF-8"),
    "heading.tsv": (b"first\tsecond\na\tb\n", "sentence1"),
    "ragged.tsv": (b"sentence\tlabel\na\n", "line 2"),
    "score.tsv": (b"sentence1\tsentence2\tscore\na\tb\tmany\n", "no number"),
    "infinite.tsv": (b"sentence1\tsentence2\tscore\na\tb\tinf\n", "not finite"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_of_text_that_are_refused(tmp_path, name):
    content, expected = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MisuseError, match=expected):
        corpus.load(tmp_path / name)


def test_inputs_are_texts_or_files(reading, tmp_path, capsys):
    lines = tmp_path / "lines.txt"
    lines.write_text("a dog\na cat\n")
    given = read(["the fish"], [str(lines), "a man eats and eats and eats and eats"], None, None, reading)
    assert given.names == ["the fish", "a dog", "a cat", "a man eats and eats and eats and eats"]
    assert given.x.shape == (4, 2, 8)
    assert "text 4 has 11 tokens" in capsys.readouterr().err
    np.save(tmp_path / "x.npy", given.x[:2])
    array = read([str(tmp_path / "x.npy")], None, Wanted((2, 8)), None, reading)
    assert array.lengths is None
    np.testing.assert_array_equal(array.x, given.x[:2])
    with pytest.raises(MisuseError, match="no input"):
        read([], None, None, None, reading)
    with pytest.raises(MisuseError, match="--tokenizer"):
        read([], ["a dog"], None, None, None)
    with pytest.raises(MisuseError, match="does not exist"):
        read([], [str(tmp_path / "absent.txt")], None, None, reading)
