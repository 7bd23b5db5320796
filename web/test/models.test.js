// Real networks in headless Chromium: a picture through ResNet-20, and how alike sentences are by all-MiniLM-L6-v2. `make test-browser`
// compiles them where ../shared/data is.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { LAUNCH, MODELS, opened, serving, skip } from "./pages.js";
import { cost, python, Server, tacit } from "./serving.js";

/** Alike, and not. */
const SENTENCES = ["A doctor examines a patient with a headache.", "The physician looks after someone whose head hurts.", "The train to Vienna leaves at noon."];
/** How far cosines may be from those of exact integers: stochastic rounding moves them. 16 runs of the interpreter with it (`simulate --rounding
 * stochastic`) are 0.009 off on average, with a deviation of 0.005; this is that and six deviations. */
const NEAR = 0.04;

let browser;
let pages;

const file = (name) => path.join(MODELS, name);

/** Why a test of a model is left out, where it is. */
function without(...names) {
  const missing = names.map(file).find((name) => !existsSync(name));
  return skip || (missing ? `there is no ${missing}: \`make build/web/.tested\` makes it of ../shared/data` : false);
}

before(async () => {
  if (skip) return;
  [pages, browser] = [await serving(), await chromium.launch(LAUNCH)];
});

after(async () => {
  await browser?.close();
  pages?.close();
});

/** The values and shape of a file of NumPy. */
function array(name) {
  const program = `import sys, numpy as np
x = np.load("${file(name)}").astype(np.float32)
x.tofile("array.f32")
print(*x.shape, sep=",")`;
  const shape = python(program).split(",").map(Number);
  const bytes = Buffer.from(python('import base64; print(base64.b64encode(open("array.f32", "rb").read()).decode())'), "base64");
  return { data: new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)), shape };
}

test("ResNet-20 in a page: the class of the interpreter, the bytes and rounds of the native client", { skip: without("resnet20.tacit", "resnet20.npy") }, async () => {
  const server = await Server.start(file("resnet20.tacit"), "--plaintext");
  try {
    const { data, shape } = array("resnet20.npy");
    const { page, problems } = await opened(browser, pages);
    const work = async ([url, values, sides]) => {
      const client = await window.Tacit.connect(url, { keepKeys: false });
      const { classes, logits, report } = await client.predict({ data: Float32Array.from(values), shape: sides });
      client.close();
      return { classes, logits: logits.map((row) => [...row]), report };
    };
    const own = await page.evaluate(work, [server.url, [...data], shape]);
    assert.equal((await server.next()).end, "finished");
    const native = tacit("predict", file("resnet20.npy"), "--server", server.address, "--plaintext");
    assert.equal((await server.next()).end, "finished");
    const simulated = tacit("simulate", file("resnet20.tacit"), file("resnet20.npy"));
    assert.deepEqual(own.classes, simulated.output);
    assert.equal(own.logits[0].length, 10);
    assert.deepEqual(cost(own.report), cost(native));
    assert.deepEqual(problems, []);
  } finally {
    await server.stop();
  }
});

/** Cosines of the sentences by what the interpreter makes of them: of the first two, and of the first and the last. */
function expected() {
  const program = `import json, numpy as np
from pathlib import Path
from tacit.data import text
reader = text.read(Path("${file("minilm.text")}"))
tokens = reader.tokens(${JSON.stringify(SENTENCES)})
np.save("sentences.npy", tokens.x.astype(np.float32))`;
  python(program);
  const { logits, output_scale: scale } = tacit("simulate", file("minilm.tacit"), "sentences.npy");
  const rows = JSON.stringify(logits.map((row) => row.map((value) => value * scale)));
  const compare = `import json, numpy as np
from pathlib import Path
from tacit.data import text
reader = text.read(Path("${file("minilm.text")}"))
rows = json.loads(Path("rows.json").read_text())
one, two, three = reader.embeddings(np.array(rows), np.load("sentences.npy"))
cosine = lambda a, b: float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
print(json.dumps([cosine(one, two), cosine(one, three)]))`;
  python(`open("rows.json", "w").write(r'''${rows}''')`);
  return JSON.parse(python(compare));
}

test("sentences are as alike in a page as by the interpreter", { skip: without("minilm.tacit", "minilm.text"), timeout: 600_000 }, async () => {
  const server = await Server.start(file("minilm.tacit"), "--plaintext");
  try {
    const { page, problems } = await opened(browser, pages);
    const work = async ([url, sentences]) => {
      const text = new window.Text(new Uint8Array(await (await fetch("/models/minilm.text")).arrayBuffer()));
      const client = await window.Tacit.connect(url, { keepKeys: false });
      const { data, shape, kept } = text.inputs(sentences);
      const { logits } = await client.predict({ data, shape });
      client.close();
      const [one, two, three] = text.embeddings(logits, kept);
      return [window.cosine(one, two), window.cosine(one, three)];
    };
    const own = await page.evaluate(work, [server.url, SENTENCES]);
    assert.equal((await server.next()).end, "finished");
    const others = expected();
    own.forEach((cosine, at) => assert.ok(Math.abs(cosine - others[at]) < NEAR, `${own} ${others}`));
    assert.ok(own[0] > own[1] + 0.2, String(own));
    assert.deepEqual(problems, []);
  } finally {
    await server.stop();
  }
});
