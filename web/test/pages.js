// A server of the folder `web`, for tests in Chromium.

import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";

import { ROOT } from "./serving.js";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** Why tests in Chromium are left out, where they are. */
export const skip = existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM}: apt-get install chromium`;
/** How Chromium starts. */
export const LAUNCH = { executablePath: CHROMIUM, args: ["--no-sandbox"] };
/** Models of `scripts/web_models.py`; pages find what clients may read at `/models/`. */
export const MODELS = path.join(ROOT, "build", "web");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".text": "application/octet-stream" };

/** Starts the server. Its pages are cross-origin isolated unless asked for at `/bare/`. */
export function serving() {
  const made = createServer((request, response) => {
    const bare = request.url.startsWith("/bare/");
    const asked = path.normalize(bare ? request.url.slice(5) : request.url);
    const file = asked.startsWith("/models/") ? path.join(MODELS, asked.slice(8)) : path.join(ROOT, "web", asked);
    const type = TYPES[path.extname(file)];
    if (!type || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    const isolated = {
      "Cross-Origin-Opener-Policy": "same-origin",
      "Cross-Origin-Embedder-Policy": "require-corp",
      "Cross-Origin-Resource-Policy": "same-origin",
      "Content-Security-Policy": "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' ws://127.0.0.1:*",
    };
    response.writeHead(200, { "Content-Type": type, ...(bare ? {} : isolated) });
    response.end(readFileSync(file));
  });
  return new Promise((resolve) => made.listen(0, "127.0.0.1", () => resolve(made)));
}

/** A page of `pages` that has loaded the client, and what went wrong in it. */
export async function opened(browser, pages, at = "/test/page.html") {
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(`http://127.0.0.1:${pages.address().port}${at}`);
  await page.waitForFunction(() => window.Tacit !== undefined);
  return { page, problems };
}
