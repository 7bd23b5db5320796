import { readFileSync } from "node:fs";
import { parentPort } from "node:worker_threads";

import { initSync } from "./wasm/tacit_web.js";
import { working } from "./worker.js";

initSync({ module: readFileSync(new URL("./wasm/tacit_web_bg.wasm", import.meta.url)) });
parentPort.on("message", working((message, transfer) => parentPort.postMessage(message, transfer)));
