// The connection of a session: it passes bytes between a worker and a WebSocket, follows the door of a fleet, and tells how far it is.

import { misuse } from "./errors.js";
import { Line } from "./line.js";
import { Ring } from "./ring.js";

/** Bytes that may wait for the worker in shared memory; more wait in the thread that owns the WebSocket. */
const ROOM = 1 << 22;

/** Phases of a session, and what stands for no layer alone (crates/web/src/link.rs). */
const PHASES = new Set(["setup", "offline", "online"]);
const NO_LAYER = 0xffffffff;

/** The address of a server: wss, or ws on this machine alone. */
export function address(text) {
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

/** What is told before anything has happened. */
export const nothing = () => ({ sent: 0, received: 0, done: 0, inputs: 0, waiting: 0, step: null });

/** A connection to the server at `url`, or to the one that it names. */
export class Connection {
  #platform;
  #url;
  #options;
  #line;
  #counts = nothing();
  #ring = Ring.ofSize(ROOM);

  constructor(platform, url, options) {
    [this.#platform, this.#url, this.#options] = [platform, url, options];
    this.watch({});
  }

  /** Who is told from now on. */
  watch({ onProgress = () => {}, onBytes = () => {} }) {
    [this.onProgress, this.onBytes] = [onProgress, onBytes];
  }

  /** The shared memory from which the worker reads first. */
  get buffer() {
    return this.#ring.buffer;
  }

  /** Connects, and calls `ready` when the WebSocket is open, or `failed` with the reason, and whether it may pass. */
  open(ready, failed) {
    this.#line = new Line(this.#platform, this.#ring, (bytes) => this.#received(bytes));
    this.#line.open(this.#url, this.#options, ready, failed);
  }

  /** Does what a message of the worker asks, if it is about the connection. */
  heard(message) {
    if (message.bytes) {
      this.onBytes("sent", message.bytes);
      this.#line.send(message.bytes);
      this.#counts.sent += message.bytes.length;
      this.#tell("running");
    } else if (message.room) {
      this.#line.pour();
    } else if (message.close) {
      this.close();
    } else if (message.redirect) {
      this.#redirect(message);
    } else if (message.told === "waiting") {
      this.#counts.waiting = message.first;
      this.#tell("waiting");
    } else if (message.told === "done") {
      [this.#counts.done, this.#counts.inputs] = [message.first, message.second];
      this.#tell("done");
    } else if (PHASES.has(message.told)) {
      this.#counts.step = { phase: message.told, layer: message.first === NO_LAYER ? null : message.first };
      this.#tell("running");
    }
  }

  close() {
    this.#line?.close();
  }

  /** The worker waits for what comes into the new ring, and reads there why nothing does. */
  #redirect(message) {
    this.#line.close();
    const ring = new Ring(message.ring);
    this.#line = new Line(this.#platform, ring, (bytes) => this.#received(bytes));
    try {
      this.#line.open(beside(this.#url, message.redirect), this.#options, () => {}, (reason) => ring.fail(reason));
    } catch (error) {
      ring.fail(error.message);
    }
  }

  #received(bytes) {
    this.onBytes("received", bytes);
    this.#counts.received += bytes.length;
    this.#tell("running");
  }

  #tell(phase) {
    this.onProgress({ phase, ...this.#counts });
  }
}
