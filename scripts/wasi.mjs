// Runs a test program of WebAssembly with threads: `node wasi.mjs PROGRAM.wasm ARGUMENTS`, as cargo's runner for wasm32-wasip1-threads.
//
// The program runs in a worker, and so does each thread that it starts, on the same memory: a worker may wait, and its threads start
// without it.

import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";
import { isMainThread, Worker, workerData } from "node:worker_threads";

/** Pages of 64 KiB at the start, no fewer than a program asks for, and at most: as the Makefile tells the linker. */
const [FIRST, MOST] = [4096, 32768];

/** Starts a worker of this file. */
function start(data) {
  return new Worker(new URL(import.meta.url), { workerData: data });
}

function run({ module, memory, words, thread, threads }) {
  const wasi = new WASI({ version: "preview1", args: words, env: process.env, returnOnExit: false });
  const spawn = (argument) => {
    const number = Atomics.add(threads, 0, 1) + 1;
    start({ module, memory, words, threads, thread: { number, argument } });
    return number;
  };
  const instance = new WebAssembly.Instance(module, {
    ...wasi.getImportObject(),
    wasi: { "thread-spawn": spawn },
    env: { memory },
  });
  if (thread === undefined) {
    wasi.start({ exports: { ...instance.exports, memory } });
    return;
  }
  // A thread begins at an entry of its own; the interface needs to know its memory only.
  wasi.initialize({ exports: { memory } });
  instance.exports.wasi_thread_start(thread.number, thread.argument);
}

if (isMainThread) {
  const words = process.argv.slice(2);
  const module = new WebAssembly.Module(readFileSync(words[0]));
  const memory = new WebAssembly.Memory({ initial: FIRST, maximum: MOST, shared: true });
  const threads = new Int32Array(new SharedArrayBuffer(4));
  const worker = start({ module, memory, words, threads });
  worker.on("error", (error) => {
    console.error(error);
    process.exit(1);
  });
  worker.on("exit", (code) => process.exit(code));
} else {
  run(workerData);
}
