// Chromium at the page of `tacit serve --page`, and what people do there.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";

import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** Why these tests are left out, where they are. */
export const skip = existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM}: apt-get install chromium`;
const CAMERA = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];
/** A seven, in parts of the pad. */
export const SEVEN = [[0.3, 0.25], [0.7, 0.25], [0.45, 0.8]];

export const launched = () => chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", ...CAMERA] });

/** A tab at a page. */
export class Tab {
  static async open(browser, url, options = {}) {
    const tab = new Tab();
    tab.page = await browser.newPage({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
    tab.problems = [];
    tab.hosts = new Set();
    tab.page.on("pageerror", (error) => tab.problems.push(String(error)));
    tab.page.on("console", (message) => ["error", "warning"].includes(message.type()) && tab.problems.push(message.text()));
    tab.page.on("request", (request) => tab.hosts.add(new URL(request.url()).host));
    tab.page.on("websocket", (socket) => tab.hosts.add(new URL(socket.url()).host));
    await tab.page.addInitScript(() => {
      window.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
    });
    await tab.page.goto(url);
    await tab.loaded();
    return tab;
  }

  loaded() {
    return this.page.waitForFunction(() => /^Model /.test(document.querySelector("#model-line").textContent));
  }

  async draw(points = SEVEN) {
    const pad = this.page.locator("#pad");
    await pad.scrollIntoViewIfNeeded();
    const { x, y, width, height } = await pad.boundingBox();
    for (const [at, point] of points.entries()) {
      await this.page.mouse.move(x + point[0] * width, y + point[1] * height, { steps: 8 });
      if (at === 0) await this.page.mouse.down();
    }
    await this.page.mouse.up();
  }

  /** Drops a file. */
  async drop(bytes, name) {
    const held = await this.page.evaluateHandle(
      ([content, title]) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(content)], title, { type: "image/png" }));
        return data;
      },
      [[...bytes], name],
    );
    await this.page.dispatchEvent("#drop", "drop", { dataTransfer: held });
  }

  /** Grey values of what the model gets. */
  async seen() {
    await this.page.waitForSelector("#seen:not([hidden])");
    return this.page.evaluate(() => {
      const canvas = document.querySelector("#preview");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return [...data].filter((_, at) => at % 4 === 0);
    });
  }

  async ask() {
    await this.page.click("#ask");
    return this.ended();
  }

  /** What the page says at the end of a session: its state, the best class, scores by class, and what went wrong. */
  async ended() {
    await this.page.waitForFunction(() => /^The answer|^There is no answer|^Stopped/.test(document.querySelector("#state").textContent));
    return this.page.evaluate(() => ({
      state: document.querySelector("#state").textContent,
      best: document.querySelector("#best").textContent,
      scores: [...document.querySelectorAll("#classes li")].map((item) => [item.querySelector(".name").textContent, Number(item.title.split(" ")[1])]),
      problem: document.querySelector("#problem").hidden ? "" : document.querySelector("#problem").innerText,
    }));
  }

  /** Nothing was wrong behind the scenes, and nobody but the server was asked for anything. */
  async clean(url) {
    assert.deepEqual(this.problems, []);
    assert.deepEqual(await this.page.evaluate(() => window.violations), []);
    assert.deepEqual([...this.hosts], [new URL(url).host]);
  }
}
