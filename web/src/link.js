// The worker's end of a connection, which crates/web/src/link.rs calls.

import { LOST, Ring } from "./ring.js";

/** Bytes that are gathered before they are handed over. */
const GATHERED = 1 << 16;

let ring = null;
let post = () => {};
let queued = [];
let length = 0;

/** Begins a session over `buffer`; `tell` takes messages to the thread that owns the WebSocket. */
export function begin(next, tell) {
  [ring, post, queued, length] = [next, tell, [], 0];
}

export function send(bytes) {
  // The bytes lie in the memory of WebAssembly, which may move.
  queued.push(bytes.slice());
  length += bytes.length;
  if (length >= GATHERED) flush();
}

export function flush() {
  if (length === 0) return;
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of queued) {
    all.set(part, at);
    at += part.length;
  }
  [queued, length] = [[], 0];
  post({ bytes: all }, [all.buffer]);
}

export function close() {
  flush();
  post({ close: true });
}

/** Goes on with another server, HOST:PORT: what is sent and received from now on is sent there and comes from there. */
export function redirect(address) {
  flush();
  ring = ring.another();
  post({ redirect: address, ring: ring.buffer });
}

/** Whether `receive` would not wait. */
export function ready() {
  flush();
  return ring === null || ring.isReady();
}

export function receive(buffer, milliseconds) {
  flush();
  if (ring === null) return LOST;
  const read = ring.read(buffer, milliseconds);
  if (ring.wasStarved()) post({ room: true });
  return read;
}

export function reason() {
  return ring === null ? "there is no connection" : ring.reason();
}

export function told(what, first, second) {
  post({ told: what, first, second });
}
