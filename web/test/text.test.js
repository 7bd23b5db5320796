// Texts as inputs: the tokens and the numbers that Python makes of them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { cosine, Text } from "tacit-client";

import { folder, python } from "./serving.js";

const TEXTS = [
  "",
  " ",
  "The cat sat on the mat.",
  "Éclair, naïve façade — ÅNGSTRÖM ﬁne",
  "don't (stop)! [MASK] x[SEP]y <b>$5</b> `a`~^|",
  "北京 is 大 and 𠀀𠀁 too",
  "tabs\u0000\u0007 and\u200b zero\u00a0width\u2028lines\r\nmore",
  "ΣΊΣΥΦΟΣ İstanbul ẞ",
  "unaffable unaffableunaffable",
  "x".repeat(101),
  `${"x".repeat(100)} y`,
  "emoji 👩‍👩‍👧 ok 🇦🇹",
  "the ".repeat(40),
  "first\tsecond",
  `${"the ".repeat(20)}\tcat`,
  `cat\t${"the ".repeat(20)}`,
  `${"the ".repeat(20)}\t${"cat ".repeat(20)}`,
  "[CLS][CLS] [PAD]mat",
];

/** Writes files X.text with a tokenizer and a public embedding, and what Python makes of the texts. */
function written() {
  const program = `import json
import numpy as np
from pathlib import Path
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors
from tacit.data.embedding import Embedding
from tacit.data.text import Text, write
texts = json.loads(Path("texts.json").read_text())
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
pieces = ["the", "cat", "sat", "on", "mat", "un", "##aff", "##able", "na", "##ive", "x", "##x", "is", "and", "eclair", "##s", "don", "t"]
letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!()[]<>/$\`~^|'"
vocab = {word: at for at, word in enumerate(dict.fromkeys([*special, *pieces, *letters, *("##" + one for one in letters), "北", "大", "σ", "##σ", "ς", "##ι", "##υ"]))}
draw = np.random.default_rng(2)
for name, model, normal in (
    ("bert", models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100), normalizers.BertNormalizer()),
    ("cased", models.WordPiece(vocab, unk_token="[UNK]"), normalizers.BertNormalizer(lowercase=False, handle_chinese_chars=False)),
    ("words", models.WordLevel(vocab, unk_token="[UNK]"), normalizers.Lowercase()),
):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normal, pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends)
    if name != "words":
        tokenizer.add_special_tokens([AddedToken(one, special=True, normalized=False) for one in special])
    width = 8
    tables = Embedding(
        draw.normal(size=(len(vocab), width)).astype(np.float16), draw.normal(size=(16, width)).astype(np.float32),
        draw.normal(size=width).astype(np.float32), draw.normal(size=width).astype(np.float32), 1e-12,
    )
    for kind, own in (("plain", None), ("embedded", tables)):
        text = Text(tokenizer.to_str(), 16, "mean", True, 0, None if own is None else own.digest, tables=own)
        write(Path(f"{name}-{kind}.text"), text)
        tokens = text.tokens(texts)
        tokens.x.tofile(f"{name}-{kind}.f32")
        outputs = draw.normal(size=(len(texts), width))
        shown = {"shape": tokens.x.shape, "lengths": tokens.lengths.tolist(), "outputs": outputs.tolist(), "embeddings": text.embeddings(outputs, tokens.x).tolist()}
        Path(f"{name}-{kind}.json").write_text(json.dumps(shown))`;
  python(`import json; open("texts.json", "w").write(json.dumps(json.loads(r'''${JSON.stringify(TEXTS).replaceAll("'", "\\u0027")}''')))`);
  python(program);
}

const bytes = (name) => readFileSync(path.join(folder, name));

function floats(name) {
  const all = bytes(name);
  return new Float32Array(all.buffer.slice(all.byteOffset, all.byteOffset + all.length));
}

test("texts become the tokens and hidden states of Python", () => {
  written();
  for (const name of ["bert", "cased", "words"]) {
    for (const kind of ["plain", "embedded"]) {
      const text = new Text(new Uint8Array(bytes(`${name}-${kind}.text`)));
      const { data, shape, lengths, kept } = text.inputs(TEXTS);
      const known = JSON.parse(bytes(`${name}-${kind}.json`));
      assert.deepEqual(shape, known.shape);
      assert.deepEqual(lengths, known.lengths, name);
      const expected = floats(`${name}-${kind}.f32`);
      const size = shape[1] * shape[2];
      for (const [row, said] of TEXTS.entries()) {
        const [own, other] = [data, expected].map((all) => [...all.slice(row * size, (row + 1) * size)]);
        if (kind === "plain") assert.deepEqual(own, other, `${name}: ${said}`);
        else own.forEach((value, at) => assert.ok(Math.abs(value - other[at]) < 1e-5, `${name}: ${said}`));
      }
      const embeddings = text.embeddings(known.outputs, kept);
      embeddings.forEach((row, at) => row.forEach((value, column) => assert.ok(Math.abs(value - known.embeddings[at][column]) < 1e-12)));
      assert.ok(Math.abs(cosine(embeddings[0], embeddings[0]) - 1) < 1e-12);
    }
  }
});

test("files and tokenizers of other kinds are refused", () => {
  const refused = (content, words) => assert.throws(() => new Text(content), (error) => error.kind === "misuse" && words.test(error.message));
  refused(new Uint8Array(4), /no file X.text/);
  refused(new Uint8Array(16).fill(255), /no file X.text/);
  const file = (tokenizer) => {
    const header = new TextEncoder().encode(JSON.stringify({ __metadata__: { text: JSON.stringify({ tokenizer: JSON.stringify(tokenizer), sequence: 8, pooling: "mean" }) } }));
    const all = new Uint8Array(8 + header.length);
    new DataView(all.buffer).setBigUint64(0, BigInt(header.length), true);
    all.set(header, 8);
    return all;
  };
  const usual = { added_tokens: [], normalizer: null, pre_tokenizer: { type: "BertPreTokenizer" }, post_processor: null, model: { type: "WordPiece", vocab: {}, unk_token: "[UNK]" } };
  assert.ok(new Text(file(usual)));
  refused(file({ ...usual, model: { type: "BPE", vocab: {} } }), /model BPE/);
  refused(file({ ...usual, pre_tokenizer: { type: "ByteLevel" } }), /pre-tokenizer ByteLevel/);
  refused(file({ ...usual, normalizer: { type: "NFC" } }), /normalizer NFC/);
  refused(file({ ...usual, post_processor: { type: "RobertaProcessing" } }), /post-processor/);
});
