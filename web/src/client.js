// The client, for a platform that starts workers and opens WebSockets.

import { misuse, pauseAfter, TacitError } from "./errors.js";
import { Line } from "./line.js";
import { arePictures, inputsOf } from "./pictures.js";
import { prediction } from "./prediction.js";
import { Ring } from "./ring.js";

/** Bytes that may wait for the worker in shared memory; more wait in the thread that owns the WebSocket. */
const ROOM = 1 << 22;

/** Names of options as the module reads them. */
const NAMES = {
  model: "model",
  token: "token",
  acceptLeakage: "accept_leakage",
  keepKeys: "keep_keys",
  planDigest: "plan_digest",
  graphDigest: "graph_digest",
  modelCommitment: "model_commitment",
  timeoutSeconds: "idle_seconds",
  sessionSeconds: "session_seconds",
};
const OWN = new Set(["pin", "connectSeconds", "preprocessing", "retryFor"]);

/** Phases of a session, and what stands for no layer alone (crates/web/src/link.rs). */
const PHASES = new Set(["setup", "offline", "online"]);
const NO_LAYER = 0xffffffff;

/** The address of a server: wss, or ws on this machine alone. */
function address(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    throw misuse(`\`${text}\` is no URL; write wss://HOST:PORT`);
  }
  const local = url.hostname === "localhost" || url.hostname === "[::1]" || /^127(\.\d+){3}$/.test(url.hostname);
  if (url.protocol !== "wss:" && !(url.protocol === "ws:" && local)) {
    throw misuse("a server is reached by wss://; ws:// is for this machine alone");
  }
  return url.href;
}

/** The address of a server that the door at `url` names: HOST:PORT, reached as the door is. */
function beside(url, server) {
  return address(`${new URL(url).protocol}//${server}`);
}

/** Options as the module reads them. */
function known(options) {
  const chosen = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || OWN.has(name)) continue;
    if (!(name in NAMES)) throw misuse(`there is no option \`${name}\``);
    chosen[NAMES[name]] = value;
  }
  return chosen;
}

/** Values and shape of an input: a Float32Array with a shape, or arrays of numbers, nested or not. */
function input(given) {
  if (given?.data instanceof Float32Array && Array.isArray(given.shape)) {
    return { values: given.data.slice(), shape: Uint32Array.from(given.shape) };
  }
  if (given instanceof Float32Array) return { values: given.slice(), shape: Uint32Array.of(given.length) };
  const shape = [];
  for (let part = given; Array.isArray(part) || ArrayBuffer.isView(part); part = part[0]) shape.push(part.length);
  const values = Float32Array.from(Array.isArray(given) || ArrayBuffer.isView(given) ? [...given].flat(Infinity) : []);
  const size = shape.reduce((all, side) => all * side, 1);
  if (shape.length === 0 || values.length !== size) {
    throw misuse("an input is an array of numbers, arrays of the same length in each other, or {data, shape}");
  }
  return { values, shape: Uint32Array.from(shape) };
}

/** Makes the class `Tacit` of a platform. */
export function clientOf(platform) {
  return class Tacit {
    #url;
    #options;
    #worker;
    #last = Promise.resolve();
    #closed = null;
    /** Ends the session that runs with an error. */
    #breakOff = () => {};

    constructor(url, options, worker) {
      [this.#url, this.#options, this.#worker] = [url, options, worker];
    }

    /** Starts a worker for sessions with the server at `url`. Each prediction is a session over a connection of its own. */
    static async connect(url, options = {}) {
      platform.check(options);
      const where = address(url);
      const chosen = known(options);
      const worker = platform.startWorker();
      const client = new Tacit(where, options, worker);
      await new Promise((resolve, reject) => {
        worker.listen(({ failed }) => (failed ? reject(new TacitError(failed)) : resolve()), reject);
        worker.post({ options: chosen });
      }).catch((error) => {
        worker.stop();
        throw error instanceof TacitError ? error : new TacitError({ kind: "internal", message: String(error?.message ?? error) });
      });
      return client;
    }

    /** Runs a session over one input or several with a leading axis, after those that were asked for before. */
    predict(given, { onProgress = () => {}, onBytes = () => {}, preprocessing = this.#options.preprocessing } = {}) {
      const ready = arePictures(given) ? inputsOf(given, preprocessing).then(input) : new Promise((resolve) => resolve(input(given)));
      const run = async () => this.#tried(await ready, onProgress, onBytes);
      ready.catch(() => {});
      const result = this.#last.then(run, run);
      this.#last = result.catch(() => {});
      return result;
    }

    /** Ends the worker, and a session that runs. */
    close() {
      this.#closed ??= misuse("the client is closed");
      this.#worker.stop();
      this.#breakOff(this.#closed);
    }

    /** Runs sessions until one succeeds, or fails for a reason that waiting does not change, for up to `retryFor` seconds. */
    async #tried(given, onProgress, onBytes) {
      const until = performance.now() + 1000 * (this.#options.retryFor ?? 0);
      for (let attempt = 0; ; attempt += 1) {
        try {
          return await this.#session(given, onProgress, onBytes);
        } catch (error) {
          const pause = pauseAfter(error, attempt);
          if (this.#closed || pause === null || performance.now() + pause > until) throw error;
          onProgress({ phase: "retrying", sent: 0, received: 0, done: 0, inputs: 0, waiting: 0, step: null });
          await new Promise((resolve) => setTimeout(resolve, pause));
        }
      }
    }

    #session({ values, shape }, onProgress, onBytes) {
      if (this.#closed) return Promise.reject(this.#closed);
      const counts = { sent: 0, received: 0, done: 0, inputs: 0, waiting: 0, step: null };
      const progress = (phase) => onProgress({ phase, ...counts });
      let line;
      return new Promise((resolve, reject) => {
        this.#breakOff = (error) => end(reject, error);
        const end = (settle, value) => {
          this.#breakOff = () => {};
          line.close();
          settle(value);
        };
        const received = (bytes) => {
          onBytes("received", bytes);
          counts.received += bytes.length;
          progress("running");
        };
        const first = Ring.ofSize(ROOM);
        const begin = () => this.#worker.post({ predict: { values, shape, ring: first.buffer } });
        this.#worker.listen(
          (message) => {
            if (message.bytes) {
              onBytes("sent", message.bytes);
              line.send(message.bytes);
              counts.sent += message.bytes.length;
              progress("running");
            } else if (message.room) {
              line.pour();
            } else if (message.close) {
              line.close();
            } else if (message.redirect) {
              // The worker waits for what comes into the new ring, and reads there why nothing does.
              line.close();
              const ring = new Ring(message.ring);
              line = new Line(platform, ring, received);
              try {
                line.open(beside(this.#url, message.redirect), this.#options, () => {}, (reason) => ring.fail(reason));
              } catch (error) {
                ring.fail(error.message);
              }
            } else if (message.told === "waiting") {
              counts.waiting = message.first;
              progress("waiting");
            } else if (message.told === "done") {
              [counts.done, counts.inputs] = [message.first, message.second];
              progress("done");
            } else if (PHASES.has(message.told)) {
              counts.step = { phase: message.told, layer: message.first === NO_LAYER ? null : message.first };
              progress("running");
            } else if (message.answer) {
              end(resolve, prediction(message.answer));
            } else if (message.failed) {
              if (message.over) this.#closed = new TacitError(message.failed);
              end(reject, new TacitError(message.failed));
            }
          },
          (error) => {
            this.#closed ??= new TacitError({ kind: "internal", message: `the worker failed: ${error?.message ?? error}` });
            end(reject, this.#closed);
          },
        );
        line = new Line(platform, first, received);
        line.open(this.#url, this.#options, begin, (reason, lost) => end(reject, new TacitError({ kind: "transport", message: reason, lost })));
      });
    }
  };
}
