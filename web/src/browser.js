// The client in browsers.

import { clientOf } from "./client.js";
import { misuse } from "./errors.js";

export { TacitError } from "./errors.js";
export { inputOf } from "./preprocessing.js";
export { cosine, Text } from "./text.js";

const platform = {
  check({ pin }) {
    if (pin !== undefined) {
      throw misuse("a browser shows a page no server's key: leave `pin` out; the browser checks the server's certificate");
    }
    if (!globalThis.crossOriginIsolated) {
      throw misuse(
        "the page is not cross-origin isolated: serve it with Cross-Origin-Opener-Policy: same-origin and " +
          "Cross-Origin-Embedder-Policy: require-corp",
      );
    }
  },

  startWorker() {
    const worker = new Worker(new URL("./worker-browser.js", import.meta.url), { type: "module" });
    return {
      post: (message) => worker.postMessage(message),
      listen: (heard, failed) => {
        worker.onmessage = ({ data }) => heard(data);
        worker.onerror = failed;
      },
      stop: () => worker.terminate(),
    };
  },

  openSocket(url, { connectSeconds = 10 }, { opened, bytes, ended }) {
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    let reason = `no session with ${url}: the server does not answer, or does not take this page or its certificate`;
    const late = setTimeout(() => socket.close(), connectSeconds * 1000);
    socket.onopen = () => {
      clearTimeout(late);
      reason = "the peer closed the connection";
      opened();
    };
    socket.onmessage = ({ data }) => bytes(new Uint8Array(data));
    socket.onclose = ({ code, reason: why }) => {
      clearTimeout(late);
      ended(code === 1000 ? null : why || reason);
    };
    return { send: (data) => socket.send(data), close: () => socket.close(1000) };
  },
};

export const Tacit = clientOf(platform);
