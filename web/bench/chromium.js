// Headless Chromium with a page that has loaded the client.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";

import { chromium } from "playwright-core";

import { ROOT } from "../test/serving.js";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** Milliseconds in which the engine optimises the code, and for which a rate is measured how often: the best counts, as others may compute meanwhile. */
const [WARM, MEASURED, TIMES] = [500, 50, 30];
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };

/** A server of the folder `web`, whose pages are cross-origin isolated. */
function serving() {
  const made = createServer((request, response) => {
    const file = path.join(ROOT, "web", path.normalize(request.url));
    const type = TYPES[path.extname(file)];
    if (!type || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      "Content-Type": type,
      "Cross-Origin-Opener-Policy": "same-origin",
      "Cross-Origin-Embedder-Policy": "require-corp",
    });
    response.end(readFileSync(file));
  });
  return new Promise((resolve) => made.listen(0, "127.0.0.1", () => resolve(made)));
}

/** The most memory that a process has had, in bytes. */
function peak(pid) {
  const line = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return line ? 1024 * Number(line[1]) : 0;
}

/** Processes of pages that have `ancestor` above them. */
function renderers(ancestor) {
  const found = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("--type=renderer")) continue;
      for (let at = pid; at !== "0"; at = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${at}/status`, "utf8"))[1]) {
        if (at === String(ancestor)) found.push(pid);
      }
    } catch {
      // The process has ended meanwhile.
    }
  }
  return found;
}

/** A browser and the server of its pages. */
export class Browser {
  static async start() {
    if (!existsSync(CHROMIUM)) throw new Error(`there is no ${CHROMIUM}: apt-get install chromium, or set CHROMIUM`);
    const browser = new Browser();
    browser.pages = await serving();
    browser.chromium = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    return browser;
  }

  get version() {
    return this.chromium.version();
  }

  /** A page that has loaded the client, with its worker and module: what follows is a session and nothing else. */
  async open(url) {
    const page = await this.chromium.newPage();
    await page.goto(`http://127.0.0.1:${this.pages.address().port}/test/page.html`);
    await page.waitForFunction(() => window.Tacit !== undefined);
    await page.evaluate(async (address) => (window.client = await window.Tacit.connect(address, { keepKeys: false })), url);
    return page;
  }

  /** Runs one session in a page that is open; seconds are those of `predict`, connection and all. */
  async predict(page, { data, shape }) {
    return page.evaluate(
      async ([values, sides]) => {
        const input = { data: Float32Array.from(values), shape: sides };
        const before = performance.now();
        const { report } = await window.client.predict(input);
        return { seconds: (performance.now() - before) / 1000, report };
      },
      [[...data], shape],
    );
  }

  /** Units of work that the engine does in a second, by name (crates/web/src/rates.rs): one thread, optimised code. */
  async rates(units) {
    const page = await this.chromium.newPage();
    await page.goto(`http://127.0.0.1:${this.pages.address().port}/test/page.html`);
    const work = async ([names, warm, time, times]) => {
      const module = await import("/src/rates/tacit_web.js");
      await module.default({ module_or_path: "/src/rates/tacit_web_bg.wasm" });
      const best = (name) => Math.max(...Array.from({ length: times }, () => module.rate(name, time)));
      return Object.fromEntries(names.map((name) => [name, (module.rate(name, warm), best(name))]));
    };
    const found = await page.evaluate(work, [units, WARM, MEASURED, TIMES]);
    await page.close();
    return found;
  }

  /** The most memory that the process of a page has had, in bytes. */
  async memory() {
    const session = await this.chromium.newBrowserCDPSession();
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    await session.detach();
    const main = processInfo.find(({ type }) => type === "browser").id;
    return Math.max(0, ...renderers(main).map(peak));
  }

  async stop() {
    await this.chromium.close();
    this.pages.close();
  }
}
