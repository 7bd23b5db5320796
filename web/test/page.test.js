// The page of `tacit serve --page` in headless Chromium: what people do with it, and what goes wrong around them.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { launched, skip, Tab } from "./page.js";
import { compiled, folder, python, ROOT, Server, tacit } from "./serving.js";

const ARTEFACTS = path.join(ROOT, "web", "test", "artefacts");
const BEST = 5;

let browser;
let model;
let server;

before(async () => {
  if (skip) return;
  mkdirSync(ARTEFACTS, { recursive: true });
  model = compiled("exact", "--preprocess", "mnist", "--labels", labels());
  server = await Server.start(model, "--plaintext", "--page");
  browser = await launched();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** A file with the names of the digits. */
function labels() {
  python('open("names.txt", "w").write("\\n".join("zero one two three four five six seven eight nine".split()))');
  return path.join(folder, "names.txt");
}

/** What the interpreter says of a file: names of the best classes with their scores. */
function interpreted(file) {
  const { logits, output_scale: scale } = tacit("simulate", model, file);
  const names = readFileSync(path.join(folder, "names.txt"), "utf8").split("\n");
  const all = logits[0].map((logit, place) => [names[place], Number((logit * scale).toFixed(4))]);
  return all.sort((first, other) => other[1] - first[1]).slice(0, BEST);
}

/** Writes grey values as an input. */
function written(pixels) {
  python(`import numpy as np; np.save("seen.npy", np.array(${JSON.stringify(pixels)}, np.float32).reshape(1, 1, 28, 28) * np.float32(1 / 255))`);
  return path.join(folder, "seen.npy");
}

/** A picture of the shipped digit `which`, larger and not square. */
function pictured(which) {
  python(`import numpy as np
from PIL import Image
x = np.load("${path.join(ROOT, "python", "tacit", "assets", "mnist_digits.npz")}")["x"][${which}, 0]
image = Image.fromarray((x * 255).astype(np.uint8)).resize((140, 140))
wide = Image.new("RGB", (201, 140))
wide.paste(image, (30, 0))
wide.save("digit.png")`);
  return path.join(folder, "digit.png");
}

test("a digit that is drawn gets the interpreter's answer", { skip }, async () => {
  const tab = await Tab.open(browser, server.page);
  assert.equal(await tab.page.isDisabled("#ask"), true);
  await tab.draw();
  const expected = interpreted(written(await tab.seen()));
  const { best, scores, problem } = await tab.ask();
  assert.deepEqual([best, problem], ["seven", ""]);
  assert.deepEqual(scores, expected);
  const { end, bytes } = await server.next();
  assert.equal(end, "finished");
  const { rows, frames, plan, hex } = await tab.page.evaluate(() => ({
    rows: [...document.querySelectorAll("#layers li")].map((item) => item.className),
    frames: document.querySelector("#frames").options.length,
    plan: document.querySelector("#digests dd").textContent,
    hex: document.querySelector("#hex").textContent,
  }));
  assert.ok(rows.length > 5 && rows.every((name) => name === "is-done"), rows.join());
  assert.ok(frames > 5 && bytes.client_to_server > 0);
  assert.match(plan, /^[0-9a-f]{64}$/);
  assert.match(hex, /^0000 {2}([0-9a-f]{2} ){8}/);
  await tab.clean(server.page);
  await tab.page.close();
});

test("a picture that is dropped becomes what Python makes of it", { skip }, async () => {
  const tab = await Tab.open(browser, server.page);
  await tab.page.click("#tab-picture");
  const file = pictured(3);
  await tab.drop(readFileSync(file), "digit.png");
  await tab.seen();
  const { scores } = await tab.ask();
  assert.deepEqual(scores, interpreted(file));
  assert.equal((await server.next()).end, "finished");
  await tab.drop(Buffer.from("no picture"), "broken.png");
  await tab.page.waitForFunction(() => /no picture/.test(document.querySelector("#input-said").textContent));
  assert.equal(await tab.page.isDisabled("#ask"), true);
  await tab.clean(server.page);
  await tab.page.close();
});

test("the camera stays off until it is turned on, and its picture can be asked about", { skip }, async () => {
  const tab = await Tab.open(browser, server.page);
  await tab.page.click("#tab-camera");
  assert.equal(await tab.page.isVisible("#video"), false);
  await tab.page.click("#camera-on");
  await tab.page.waitForSelector("#shoot:not([disabled])");
  await tab.page.click("#shoot");
  assert.equal((await tab.seen()).length, 784);
  assert.match((await tab.ask()).state, /^The answer is/);
  assert.equal((await server.next()).end, "finished");
  await tab.page.click("#tab-picture");
  assert.equal(await tab.page.evaluate(() => document.querySelector("#video").srcObject), null);
  await tab.clean(server.page);
  await tab.page.close();
});

test("the keyboard is enough, and a page that is loaded again works", { skip }, async () => {
  const tab = await Tab.open(browser, server.page);
  for (let round = 0; round < 2; round += 1) {
    const { keyboard } = tab.page;
    await tab.page.focus("#tab-draw");
    await keyboard.press("Tab");
    assert.equal(await tab.page.evaluate(() => document.activeElement.id), "pad");
    for (let step = 0; step < 8; step += 1) await keyboard.press("ArrowUp");
    await keyboard.press("Space");
    for (let step = 0; step < 18; step += 1) await keyboard.press("ArrowDown");
    await keyboard.press("Space");
    for (let step = 0; step < 3; step += 1) await keyboard.press("Tab");
    assert.equal(await tab.page.evaluate(() => document.activeElement.id), "ask");
    await keyboard.press("Enter");
    assert.equal((await tab.ended()).best, "one");
    assert.equal((await server.next()).end, "finished");
    await tab.page.reload();
    await tab.loaded();
  }
  await tab.clean(server.page);
  await tab.page.close();
});

test("later sessions of a page go on from the first", { skip }, async () => {
  const tab = await Tab.open(browser, server.page);
  await tab.draw();
  const states = [];
  for (let round = 0; round < 3; round += 1) {
    states.push((await tab.ask()).state);
    assert.equal((await server.next()).end, "finished");
  }
  assert.deepEqual(states.map((state) => state.includes("went on")), [false, true, true]);
  await tab.page.close();
});

test("who has used up the budget is told what to do", { skip }, async () => {
  const strict = await Server.start(model, "--plaintext", "--page", "--ledger", path.join(folder, "used"), "--budget", "total=1");
  try {
    const tab = await Tab.open(browser, strict.page);
    await tab.draw();
    assert.equal((await tab.ask()).best, "seven");
    assert.match((await tab.ask()).problem, /budget[^]*ask its operator/);
    await tab.page.close();
  } finally {
    await strict.stop();
  }
});

test("wrong pins end a session before the input is touched", { skip }, async () => {
  for (const pin of ["graph", "commitment", "plan"]) {
    const tab = await Tab.open(browser, `${server.page}#${pin}=${"0".repeat(64)}`);
    await tab.draw();
    const { problem, best } = await tab.ask();
    assert.match(problem, /not 0{64} as pinned/);
    assert.equal(best, "");
    assert.equal((await server.next()).end, "failed");
    await tab.page.fill(`#pin-${pin}`, "");
    assert.equal((await tab.ask()).best, "seven");
    assert.equal((await server.next()).end, "finished");
    await tab.page.close();
  }
});

test("a server that is killed leaves a message, one that drains an answer", { skip }, async () => {
  for (const [signal, wanted] of [["SIGKILL", /^There is no answer/], ["SIGTERM", /^The answer is seven/]]) {
    const other = await Server.start(model, "--plaintext", "--page");
    const tab = await Tab.open(browser, other.page);
    await tab.draw();
    await tab.page.click("#ask");
    await tab.page.waitForFunction(() => document.querySelector("#frames").options.length > 2);
    const stopped = other.stop(signal);
    const { state, problem } = await tab.ended();
    assert.match(state, wanted);
    assert.equal(/Look whether the server runs/.test(problem), signal === "SIGKILL", problem);
    await stopped;
    assert.equal(other.process.exitCode, signal === "SIGKILL" ? null : 0);
    await tab.page.close();
  }
});

test("a session can be stopped", { skip }, async () => {
  const tab = await Tab.open(browser, server.page);
  await tab.draw();
  await tab.page.click("#ask");
  await tab.page.waitForFunction(() => document.querySelector("#frames").options.length > 2);
  await tab.page.click("#stop");
  assert.match((await tab.ended()).state, /^Stopped/);
  assert.equal((await server.next()).end, "failed");
  assert.equal((await tab.ask()).best, "seven");
  assert.equal((await server.next()).end, "finished");
  await tab.page.close();
});

test("sentences are compared as Python compares them", { skip }, async () => {
  const said = ["the man plays", "A WOMAN, eats [fish]", "the red ball on a dog ".repeat(5)];
  python(`import sys
sys.path.insert(0, "${path.join(ROOT, "tests")}")
from pathlib import Path
from encoders import write
write(Path("encoder"), pooling="mean_tokens")`);
  for (const options of [[], ["--public-embedding"]]) {
    const file = path.join(folder, `encoder${options.length}.tacit`);
    tacit("compile", path.join(folder, "encoder"), "-o", file, "--sequence", "16", "--rounding", "exact", ...options);
    const expected = JSON.parse(
      python(`import json
from pathlib import Path
from tacit.model import Model
model = Model(Path("${file}"))
tokens = model.text.tokens(json.loads('''${JSON.stringify(said)}'''))
found = model.text.embeddings(model.real(model.simulate(tokens.x)), tokens.x)
print(json.dumps((found @ found.T).tolist()))`),
    );
    const texts = await Server.start(file, "--plaintext", "--page");
    try {
      const tab = await Tab.open(browser, texts.page);
      await tab.page.fill("#texts", said.join("\n\n"));
      await tab.page.waitForSelector("#ask:not([disabled])");
      assert.match(await tab.page.textContent("#input-said"), /Sentence 3 has 32 tokens and is cut to 16/);
      assert.match((await tab.ask()).best, /^Sentences \d and \d are nearest$/);
      const shown = await tab.page.evaluate(() => [...document.querySelectorAll("#found tbody tr")].map((row) => [...row.querySelectorAll("td")].map((cell) => Number(cell.textContent))));
      // The hidden states of a public embedding are rounded in another order here.
      const near = options.length === 0 ? 0.00051 : 0.005;
      shown.forEach((row, first) => row.forEach((value, second) => assert.ok(Math.abs(value - expected[first][second]) < near, `${shown} ${expected}`)));
      await tab.clean(texts.page);
      await tab.page.close();
    } finally {
      await texts.stop();
    }
  }
});

test("the page fits small screens, and axe finds no fault in light and dark", { skip }, async () => {
  const axe = readFileSync(path.join(ROOT, "web", "node_modules", "axe-core", "axe.min.js"), "utf8");
  for (const colorScheme of ["light", "dark"]) {
    const tab = await Tab.open(browser, server.page, { colorScheme });
    await tab.draw();
    for (const width of [360, 768, 1280]) {
      await tab.page.setViewportSize({ width, height: 800 });
      assert.equal(await tab.page.evaluate(() => document.documentElement.scrollWidth), width);
      await tab.page.screenshot({ path: path.join(ARTEFACTS, `before-${width}-${colorScheme}.png`) });
    }
    await tab.ask();
    await server.next();
    await tab.page.click("summary");
    for (const width of [360, 768, 1280]) {
      await tab.page.setViewportSize({ width, height: 800 });
      assert.equal(await tab.page.evaluate(() => document.documentElement.scrollWidth), width);
      await tab.page.screenshot({ path: path.join(ARTEFACTS, `after-${width}-${colorScheme}.png`), fullPage: true });
    }
    await tab.page.evaluate(axe);
    const { violations } = await tab.page.evaluate(() => window.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ target }) => target)]), []);
    await tab.page.close();
  }
});
