// Sessions in headless Chromium beside sessions of the native client, in turns, against one server.
//
//     node bench/run.js [--models mnist,resnet20] [--repeat 5] [--json FILE]
//
// Servers plan for loopback.
//
// Bytes and rounds must be equal; seconds are medians. Every session is a new one, with no keys kept. The first session of a page
// runs on code that the engine has not optimised yet, and is shown by itself. Rates of single kernels come first (bench/rates.js).

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import { parseArgs } from "node:util";

import { Server, tacit } from "../test/serving.js";
import { Browser } from "./chromium.js";
import { found, LOOPBACK, MODELS } from "./models.js";
import * as rates from "./rates.js";

const { values: options } = parseArgs({
  options: {
    models: { type: "string", default: Object.keys(MODELS).join(",") },
    repeat: { type: "string", default: "5" },
    json: { type: "string" },
  },
});

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Fails unless both sessions had the same bytes and rounds, in all. */
function same(name, page, native) {
  const [own, other] = [page, native].map(({ bytes, rounds }) => JSON.stringify({ bytes, rounds }));
  if (own !== other) throw new Error(`${name}: the page had ${own}, the native client ${other}`);
}

/** Seconds of each phase of a session. */
const phases = (report) => Object.fromEntries(Object.entries(report.phases).map(([phase, { seconds }]) => [phase, seconds]));

/** Medians of lists of phases. */
const medians = (lists) => Object.fromEntries(Object.keys(lists[0]).map((phase) => [phase, median(lists.map((list) => list[phase]))]));

async function measured(browser, model, repeat) {
  const server = await Server.start(model.file, "--plaintext", "--threads", "1", ...(model.options ?? LOOPBACK));
  try {
    const page = await browser.open(server.url);
    const [pages, natives] = [[], []];
    let first;
    for (let at = 0; at <= repeat; at += 1) {
      const own = await browser.predict(page, model);
      await server.next();
      if (at === 0) first = own.seconds;
      const native = tacit("predict", model.input, "--server", server.address, "--plaintext", "--threads", "1");
      await server.next();
      same(model.name, own.report, native);
      if (at > 0) {
        pages.push(own);
        natives.push(native);
      }
    }
    const memory = await browser.memory();
    await page.close();
    const [own, native] = [median(pages.map(({ seconds }) => seconds)), median(natives.map(({ seconds }) => seconds))];
    const { bytes, rounds } = natives[0];
    return {
      title: model.title,
      bytes,
      rounds,
      chromium: { seconds: own, first_seconds: first, phases: medians(pages.map(({ report }) => phases(report))) },
      native: { seconds: native, phases: medians(natives.map(phases)) },
      ratio: own / native,
      peak_memory_bytes: memory,
    };
  } finally {
    await server.stop();
  }
}

function row(name, { bytes, rounds, chromium, native, ratio, peak_memory_bytes: memory }) {
  const megabytes = Object.values(bytes).reduce((all, part) => all + part, 0) / 1e6;
  const cells = [chromium.seconds, chromium.first_seconds, native.seconds, ratio, megabytes].map((number) => number.toFixed(2));
  return [name, ...cells, rounds, (memory / 1e6).toFixed(0)].map((cell, at) => String(cell).padStart(at ? 10 : 0).padEnd(at ? 0 : 10)).join(" ");
}

const names = options.models.split(",");
const models = names.map(found);
/** The commit of the checkout, and the version of the protocol in its sources. */
function code() {
  const commit = execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).trim();
  const opening = readFileSync(new URL("../../crates/runtime/src/session/opening.rs", import.meta.url), "utf8");
  return { commit, protocol: Number(opening.match(/pub const PROTOCOL: u32 = (\d+);/)[1]) };
}

const results = {
  ...code(),
  machine: `${os.cpus()[0].model}, ${os.cpus().length} cores`,
  load: os.loadavg()[0],
  repeat: Number(options.repeat),
  rates: {},
  module_bytes: readFileSync(new URL("../src/wasm/tacit_web_bg.wasm", import.meta.url)).length,
  models: {},
};
const alone = await Browser.start();
try {
  results.rates = await rates.measured(alone);
  for (const [name, rate] of Object.entries(results.rates)) console.log(rates.line(name, rate));
} finally {
  await alone.stop();
}
console.log(["model     ", "chromium s", "   first s", "  native s", "     ratio", "        MB", "    rounds", " memory MB"].join(" "));
for (const model of models) {
  // A browser for each, so that memory is that of one model.
  const browser = await Browser.start();
  try {
    results.chromium = browser.version;
    results.models[model.name] = await measured(browser, model, results.repeat);
    console.log(row(model.name, results.models[model.name]));
    if (options.json) writeFileSync(options.json, `${JSON.stringify(results, null, 1)}\n`);
  } finally {
    await browser.stop();
  }
}
