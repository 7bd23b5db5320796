// The client, for a platform that starts workers and opens WebSockets.

import { address, Connection, nothing } from "./connection.js";
import { misuse, pauseAfter, TacitError } from "./errors.js";
import { arePictures, inputsOf } from "./pictures.js";
import { prediction } from "./prediction.js";
import { checked, Session } from "./session.js";

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
    /** The session that is open between inputs. */
    #open = null;
    /** Ends what the worker is asked for with an error. */
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
    predict(given, { preprocessing = this.#options.preprocessing, ...watching } = {}) {
      const ready = arePictures(given) ? inputsOf(given, preprocessing).then(input) : new Promise((resolve) => resolve(input(given)));
      ready.catch(() => {});
      return this.#then(async () => {
        const values = await ready;
        return this.#tried(() => this.#single(values, watching), watching);
      });
    }

    /** Opens a session of at most so many inputs that need not exist yet, after what was asked for before. */
    async session(inputs, watching = {}) {
      const most = checked(inputs);
      return this.#then(() => this.#tried(() => this.#opened(most, watching), watching));
    }

    /** Ends the worker, and a session that runs. */
    close() {
      this.#closed ??= misuse("the client is closed");
      this.#worker.stop();
      this.#breakOff(this.#closed);
      this.#open?.end(this.#closed);
    }

    #then(run) {
      const result = this.#last.then(run, run);
      this.#last = result.catch(() => {});
      return result;
    }

    /** Runs sessions until one succeeds, or fails for a reason that waiting does not change, for up to `retryFor` seconds. */
    async #tried(run, { onProgress = () => {} }) {
      const until = performance.now() + 1000 * (this.#options.retryFor ?? 0);
      for (let attempt = 0; ; attempt += 1) {
        try {
          return await run();
        } catch (error) {
          const pause = pauseAfter(error, attempt);
          if (this.#closed || pause === null || performance.now() + pause > until) throw error;
          onProgress({ phase: "retrying", ...nothing() });
          await new Promise((resolve) => setTimeout(resolve, pause));
        }
      }
    }

    /** A session over inputs that are there. */
    async #single({ values, shape }, watching) {
      const connection = this.#connection(watching);
      try {
        return prediction((await this.#asked(connection, { predict: { values, shape, ring: connection.buffer } })).answer);
      } finally {
        connection.close();
      }
    }

    /** A session that stays open. */
    async #opened(inputs, watching) {
      const connection = this.#connection(watching);
      const asked = this.#asked(connection, { open: { inputs, ring: connection.buffer } });
      const { opened } = await asked.catch((error) => {
        connection.close();
        throw error;
      });
      let running = asked;
      const ask = (message) => (running = this.#asked(connection, message, session));
      const ended = () => {
        this.#open = null;
        if (this.#closed) return;
        this.#worker.post({ abandon: true });
        // The worker answers what it was asked for before it hears this.
        this.#then(() => running.catch(() => {}));
      };
      const report = JSON.parse(opened);
      const session = new Session({ ask, connection, ended, report, options: this.#options, toInput: input });
      this.#open = session;
      this.#listen(connection, () => {}, (error) => session.end(error), session);
      return session;
    }

    #connection(watching) {
      if (this.#closed) throw this.#closed;
      if (this.#open) throw misuse("a session is open: use its `predict`, or `finish` it first");
      const connection = new Connection(platform, this.#url, this.#options);
      connection.watch(watching);
      return connection;
    }

    /** Posts a message to the worker, once there is a connection, and gives its answer. */
    #asked(connection, message, session = null) {
      if (this.#closed) return Promise.reject(this.#closed);
      return new Promise((resolve, reject) => {
        const end = (settle, value) => {
          this.#breakOff = () => {};
          settle(value);
        };
        this.#breakOff = (error) => end(reject, error);
        this.#listen(connection, (answer) => end(resolve, answer), (error) => end(reject, error), session);
        const begin = () => this.#worker.post(message);
        if (session) begin();
        else connection.open(begin, (reason, lost) => end(reject, new TacitError({ kind: "transport", message: reason, lost })));
      });
    }

    /** Hears the worker: what is for the connection goes there, and the rest is an answer or an error. */
    #listen(connection, answered, failed, session) {
      this.#worker.listen(
        (message) => {
          if (message.answer || message.opened || message.finished) {
            answered(message);
          } else if (message.failed) {
            if (message.over) this.#closed = new TacitError(message.failed);
            failed(new TacitError(message.failed));
          } else if (message.ready !== undefined) {
            if (session) session.ready = message.ready;
          } else {
            connection.heard(message);
          }
        },
        (error) => {
          this.#closed ??= new TacitError({ kind: "internal", message: `the worker failed: ${error?.message ?? error}` });
          failed(this.#closed);
        },
      );
    }
  };
}
