// The client in headless Chromium against `tacit serve`, beside the same client in Node.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";
import { Tacit } from "tacit-client";

import { Door } from "./fleet.js";
import { LAUNCH, opened as openedIn, serving, skip } from "./pages.js";
import { compiled, cost, digits, folder, Server } from "./serving.js";

let browser;
let digit;
let pages;
let server;

before(async () => {
  if (skip) return;
  const exact = compiled("exact");
  digit = digits(1);
  [server, pages] = [await Server.start(exact, "--plaintext"), await serving()];
  browser = await chromium.launch(LAUNCH);
});

after(async () => {
  await browser?.close();
  pages?.close();
  await server?.stop();
});

const opened = (at) => openedIn(browser, pages, at);

/** Runs predictions of one input in a page, one after another. */
function predicted(page, url, count, options = {}) {
  const work = async ([address, values, shape, times, chosen]) => {
    const client = await window.Tacit.connect(address, chosen);
    const results = [];
    try {
      for (let at = 0; at < times; at += 1) {
        const before = performance.now();
        const { classes, logits, report } = await client.predict({ data: Float32Array.from(values), shape });
        results.push({ classes, logits: logits.map((row) => [...row]), report, milliseconds: performance.now() - before });
      }
    } finally {
      client.close();
    }
    return results;
  };
  return page.evaluate(work, [url, [...digit.data], digit.shape, count, options]);
}

test("a page gets what a program gets, for the same bytes and rounds", { skip }, async (context) => {
  const { page, problems } = await opened();
  const [own] = await predicted(page, server.url, 1, { keepKeys: false });
  assert.equal((await server.next()).end, "finished");
  const client = await Tacit.connect(server.url, { keepKeys: false });
  const other = await client.predict(digit);
  client.close();
  assert.equal((await server.next()).end, "finished");
  assert.deepEqual([own.classes, own.logits], [other.classes, other.logits.map((row) => [...row])]);
  assert.deepEqual(cost(own.report), cost(other.report));
  assert.deepEqual(problems, []);
  context.diagnostic(`a digit takes ${own.milliseconds.toFixed(0)} ms, once the module is loaded`);
});

test("a session that comes back is faster and the same", { skip }, async (context) => {
  const { page } = await opened();
  const results = await predicted(page, server.url, 3);
  for (let at = 0; at < 3; at += 1) assert.equal((await server.next()).end, "finished");
  assert.deepEqual(results.map(({ report }) => report.resumed ?? false), [false, true, true]);
  assert.deepEqual(results[2].classes, results[0].classes);
  context.diagnostic(`a digit takes ${results.map(({ milliseconds }) => milliseconds.toFixed(0)).join(", ")} ms`);
});

test("a page follows the door of a fleet to its servers", { skip }, async () => {
  const model = compiled("exact");
  const options = ["--plaintext", "--ledger", path.join(folder, "page.ledger"), "--budget", "total=4"];
  const door = await Door.start("page", ...options);
  const servers = [];
  try {
    for (const name of ["one", "two"]) servers.push(await door.serve(model, name, "--plaintext"));
    const { page, problems } = await opened();
    const results = await predicted(page, door.url, 4, { keepKeys: false });
    const met = new Set(results.map(({ report }) => report.door.server));
    assert.deepEqual([...met].sort(), servers.map(({ websocket }) => websocket).sort());
    for (const { classes } of results) assert.deepEqual(classes, results[0].classes);
    await assert.rejects(predicted(page, door.url, 1), /budget/);
    await door.until(({ tickets }) => tickets.redeemed === 4 && tickets.out === 0);
    assert.deepEqual(problems, []);
  } finally {
    await Promise.all([door, ...servers].map((each) => each.stop("SIGKILL")));
  }
});

test("a session of a page stays open and prepares while it waits", { skip }, async () => {
  const offline = await Server.start(compiled("exact"), "--plaintext", "--offline", "2");
  try {
    const { page, problems } = await opened();
    const work = async ([url, values, shape]) => {
      const client = await window.Tacit.connect(url);
      const session = await client.session(2);
      const input = { data: Float32Array.from(values), shape };
      const results = [];
      for (let at = 0; at < 2; at += 1) {
        const until = performance.now() + 60_000;
        while (session.ready < 2 - at && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
        const ready = session.ready;
        const { classes, report } = await session.predict(input);
        results.push({ ready, classes, report });
      }
      const report = await session.finish();
      client.close();
      return { results, report };
    };
    const { results, report } = await page.evaluate(work, [offline.url, [...digit.data], digit.shape]);
    const other = await offline.next();
    assert.equal(other.end, "finished");
    assert.deepEqual(results.map(({ ready }) => ready), [2, 1]);
    assert.deepEqual(results[0].classes, results[1].classes);
    assert.deepEqual(report.bytes, other.bytes);
    assert.deepEqual(problems, []);
  } finally {
    await offline.stop();
  }
});

test("a page that is closed costs the server its session", { skip }, async () => {
  const { page } = await opened();
  const begin = async ([url, values, shape]) => {
    const client = await window.Tacit.connect(url);
    const onProgress = () => (window.begun = true);
    client.predict({ data: Float32Array.from(values), shape }, { onProgress }).catch(() => {});
  };
  await page.evaluate(begin, [server.url, [...digit.data], digit.shape]);
  await page.waitForFunction(() => window.begun);
  await page.close();
  const { end } = await server.next();
  assert.equal(end, "failed");
  const { page: other } = await opened();
  assert.equal((await predicted(other, server.url, 1)).length, 1);
  assert.equal((await server.next()).end, "finished");
});

test("pages of other origins and pages that are not isolated are told why", { skip }, async () => {
  const strict = await Server.start(compiled("exact"), "--plaintext", "--origin", "https://shop.example.org");
  try {
    const { page } = await opened();
    await assert.rejects(predicted(page, strict.url, 1), /does not take this page/);
    assert.match((await strict.next()).error.message, /another origin/);
  } finally {
    await strict.stop();
  }
  const { page } = await opened("/bare/test/page.html");
  await assert.rejects(predicted(page, server.url, 1), /cross-origin isolated/);
  await assert.rejects(predicted((await opened()).page, server.url, 1, { pin: "0".repeat(64) }), /no server's key/);
});
