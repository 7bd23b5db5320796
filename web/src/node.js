// The client in Node.

import { createHash } from "node:crypto";
import tls from "node:tls";
import { Worker } from "node:worker_threads";

import WebSocket from "ws";

import { clientOf } from "./client.js";
import { misuse } from "./errors.js";

export { TacitError } from "./errors.js";
export { inputOf } from "./preprocessing.js";
export { cosine, Text } from "./text.js";

/** Codes of errors of a network that may pass; others, such as those of certificates, stay. */
const LOST = /^E(AI_AGAIN|CONN|HOST|NET|PIPE)/;

/** Connects by TLS to the server with this key, whoever certified it. */
function pinned(pin) {
  return (options) => {
    const socket = tls.connect({ ...options, rejectUnauthorized: false });
    socket.once("secureConnect", () => {
      const key = socket.getPeerX509Certificate()?.publicKey.export({ type: "spki", format: "der" });
      const found = key && createHash("sha256").update(key).digest("hex");
      if (found !== pin.toLowerCase()) {
        socket.destroy(new Error("the server's key is not the one that is pinned"));
      }
    });
    return socket;
  };
}

const platform = {
  check({ pin }) {
    if (pin !== undefined && !/^[0-9a-fA-F]{64}$/.test(pin)) {
      throw misuse("a pin has 64 hexadecimal digits (`tacit serve` prints it)");
    }
  },

  startWorker() {
    const worker = new Worker(new URL("./worker-node.js", import.meta.url), { execArgv: [] });
    // A client without a session keeps no program running.
    worker.unref();
    let [heard, failed] = [() => {}, () => {}];
    worker.on("message", (message) => heard(message));
    worker.on("error", (error) => failed(error));
    worker.on("exit", () => failed(new Error("it has ended")));
    return {
      post: (message) => worker.postMessage(message),
      listen: (hear, fail) => ([heard, failed] = [hear, fail]),
      stop: () => void worker.terminate(),
    };
  },

  openSocket(url, { pin, connectSeconds = 10 }, { opened, bytes, ended }) {
    const secure = pin === undefined ? {} : { createConnection: pinned(pin) };
    const limit = { handshakeTimeout: connectSeconds * 1000, perMessageDeflate: false };
    const socket = new WebSocket(url, { ...limit, ...secure });
    let [reason, lost] = ["the peer closed the connection", true];
    socket.binaryType = "nodebuffer";
    socket.on("open", opened);
    socket.on("message", (data) => bytes(new Uint8Array(data)));
    socket.on("error", (error) => {
      [reason, lost] = [`no session with ${url}: ${error.message}`, LOST.test(error.code ?? "")];
    });
    socket.on("close", (code, why) => ended(code === 1000 ? null : String(why) || reason, lost));
    return { send: (data) => socket.send(data), close: () => socket.close(1000) };
  },
};

export const Tacit = clientOf(platform);
