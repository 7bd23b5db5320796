import init from "./wasm/tacit_web.js";
import { working } from "./worker.js";

const work = working((message, transfer) => self.postMessage(message, transfer ?? []));
const loaded = init({ module_or_path: new URL("./wasm/tacit_web_bg.wasm", import.meta.url) });
self.onmessage = async ({ data }) => {
  try {
    await loaded;
  } catch (error) {
    self.postMessage({ failed: { kind: "internal", message: `cannot load the module: ${error.message}` }, over: true });
    return;
  }
  work(data);
};
