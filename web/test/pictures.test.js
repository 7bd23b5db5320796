// Pictures as inputs: to the bit what Python makes of the same pixels, and in a browser of the same file.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { test } from "node:test";

import { inputOf, Tacit } from "tacit-client";

import { launched, skip } from "./page.js";
import { compiled, folder, python, ROOT, Server, tacit } from "./serving.js";

const SIZES = [[300, 227], [64, 500], [28, 28], [31, 29], [20, 20], [256, 256], [33, 90]];
const PREPROCESSINGS = {
  imagenet: "imagenet",
  mobilenet: "mobilenet",
  caffe: "caffe-squeezenet",
  cifar: "cifar10",
  mnist: "mnist",
  unit: "unit",
  cubic: { resize: 64, crop: 50, resample: "bicubic", mean: [1, 2, 3], std: [0.3, 0.4, 0.5] },
  odd: { resize: 29, crop: 28, channel_order: "L", resample: "bicubic", scale: 0.5 },
};

/** Writes pictures, and what Python makes of them, for each size and preprocessing. */
function written() {
  python(`import json
import numpy as np
from PIL import Image
from tacit.data.pictures import pixels
from tacit.data.preprocess import PRESETS, from_json
from pathlib import Path
draw = np.random.default_rng(1)
for number, (width, height) in enumerate(${JSON.stringify(SIZES)}):
    x = draw.integers(0, 256, (height, width, 3), dtype=np.uint8)
    x[:, : width // 2] = np.linspace(0, 255, height, dtype=np.uint8)[:, None, None]
    file = Path(f"{number}.png")
    Image.fromarray(x).save(file)
    np.dstack([x, np.full((height, width), 255, np.uint8)]).tofile(f"{number}.rgba")
    for name, given in json.loads('${JSON.stringify(PREPROCESSINGS)}').items():
        how = PRESETS[given] if isinstance(given, str) else from_json(json.dumps(given))
        how.normalise(pixels(file, how)[None])[0].tofile(f"{number}-{name}.f32")`);
}

const bytes = (name) => readFileSync(path.join(folder, name));

function floats(name) {
  const all = bytes(name);
  return new Float32Array(all.buffer.slice(all.byteOffset, all.byteOffset + all.length));
}

test("pixels become what Python makes of them", () => {
  written();
  for (const [number, [width, height]] of SIZES.entries()) {
    const picture = { data: new Uint8ClampedArray(bytes(`${number}.rgba`)), width, height };
    for (const [name, preprocessing] of Object.entries(PREPROCESSINGS)) {
      assert.deepEqual(inputOf(picture, preprocessing).data, floats(`${number}-${name}.f32`), `${width}x${height} ${name}`);
    }
  }
});

test("preprocessings that are none are refused, as in Python", () => {
  const picture = { data: new Uint8ClampedArray(4 * 9), width: 3, height: 3 };
  const refused = (given, words) => assert.throws(() => inputOf(picture, given), (error) => error.kind === "misuse" && words.test(error.message));
  refused("x", /no preprocessing `x`/);
  refused(undefined, /needs its model's preprocessing/);
  refused({ size: 3 }, /`size`/);
  refused({ resize: 0 }, /`resize`/);
  refused({ resize: 2, crop: 3 }, /`crop`/);
  refused({ std: [0] }, /`std`/);
  refused({ mean: [1, 2] }, /`mean`/);
  refused({ scale: 0 }, /`scale`/);
  refused({ channel_order: "RGBA" }, /`channel_order`/);
  refused({ crop: 4 }, /smaller than the crop/);
});

test("a session takes pixels, and several pictures", async () => {
  const model = compiled("exact", "--preprocess", "mnist");
  const server = await Server.start(model, "--plaintext");
  const client = await Tacit.connect(server.url, { preprocessing: "mnist" });
  try {
    const picture = { data: new Uint8ClampedArray(bytes("3.rgba")), width: 31, height: 29 };
    const { outputs } = await client.predict([picture, picture]);
    const { logits } = tacit("simulate", model, path.join(folder, "3.png"));
    assert.deepEqual([...outputs].map(Number), [...logits[0], ...logits[0]]);
    await assert.rejects(client.predict(picture, { preprocessing: "none" }), /no preprocessing `none`/);
    await assert.rejects(client.predict(new Blob([bytes("3.png")])), /only browsers read files/);
  } finally {
    client.close();
    await server.stop();
  }
});

/** A server of the package's files. */
function serving() {
  const made = createServer(({ url }, response) => {
    const file = path.join(ROOT, "web", "src", path.basename(url));
    const content = url === "/" ? '<!doctype html><link rel="icon" href="data:,"><title>pictures</title>' : readFileSync(file);
    response.writeHead(200, { "Content-Type": url === "/" ? "text/html" : "text/javascript" }).end(content);
  });
  return new Promise((resolve) => made.listen(0, "127.0.0.1", () => resolve(made)));
}

test("a browser reads files, bitmaps and canvases as Python does", { skip }, async () => {
  const [pages, browser] = [await serving(), await launched()];
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${pages.address().port}/`);
    for (const [number] of SIZES.entries()) {
      const found = await page.evaluate(
        async ([content, preprocessing]) => {
          const { inputsOf } = await import("/pictures.js");
          const blob = new Blob([Uint8Array.from(content)], { type: "image/png" });
          const bitmap = await createImageBitmap(blob);
          const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
          canvas.getContext("2d").drawImage(bitmap, 0, 0);
          const all = [blob, new File([blob], "a.png"), bitmap, canvas];
          const digest = async ({ data }) => [...new Uint8Array(await crypto.subtle.digest("SHA-256", data))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
          return Promise.all(all.map(async (picture) => digest(await inputsOf(picture, preprocessing))));
        },
        [[...bytes(`${number}.png`)], PREPROCESSINGS.imagenet],
      );
      const expected = createHash("sha256").update(bytes(`${number}-imagenet.f32`)).digest("hex");
      assert.deepEqual(found, Array(4).fill(expected), String(SIZES[number]));
    }
  } finally {
    await browser.close();
    pages.close();
  }
});
