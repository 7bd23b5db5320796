// Servers and models for tests: the command line of the project, in processes of its own.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PYTHON = path.join(ROOT, ".venv", "bin", "python");
const ASSETS = path.join(ROOT, "python", "tacit", "assets");

/** A folder that goes when the tests end. */
export const folder = mkdtempSync(path.join(tmpdir(), "tacit-web-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Runs `tacit` with --json and returns what it prints. */
export function tacit(...words) {
  const out = execFileSync(PYTHON, ["-m", "tacit", ...words, "--json"], { cwd: folder, encoding: "utf8" });
  return JSON.parse(out);
}

/** Compiles the network of digits under a rounding, and further options; returns the file. */
export function compiled(rounding, ...options) {
  const file = path.join(folder, `${rounding}${options.length > 0 ? "-with-options" : ""}.tacit`);
  const calibration = path.join(ASSETS, "mnist_calibration.npz");
  tacit("compile", path.join(ASSETS, "mnist.onnx"), "-o", file, "--calibrate", calibration, "--rounding", rounding, ...options);
  return file;
}

/** The first shipped digits: a file of NumPy, and the values. */
export function digits(count) {
  const program = `import numpy as np
x = np.load("${path.join(ASSETS, "mnist_digits.npz")}")["x"][:${count}].astype(np.float32)
np.save("digits.npy", x)
x.tofile("digits.f32")
print(*x.shape)`;
  const shape = execFileSync(PYTHON, ["-c", program], { cwd: folder, encoding: "utf8" }).trim().split(" ").map(Number);
  const bytes = readFileSync(path.join(folder, "digits.f32"));
  const data = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  return { file: path.join(folder, "digits.npy"), data, shape };
}

/** Runs a program of Python in the tests' folder; gives what it prints. */
export function python(program) {
  return execFileSync(PYTHON, ["-c", program], { cwd: folder, encoding: "utf8" }).trim();
}

/** What a report says of costs but for seconds. */
export function cost({ bytes, rounds, phases, layers }) {
  return JSON.parse(JSON.stringify({ bytes, rounds, phases, layers }, (name, value) => (name === "seconds" ? undefined : value)));
}

/** A command that prints lines of JSON until it is stopped. */
export class Process {
  constructor(python = PYTHON) {
    this.python = python;
  }

  /** Runs `tacit` and gives the first line that it prints. */
  begin(...words) {
    const env = { ...process.env, PYTHONPATH: path.join(ROOT, "python") };
    this.process = spawn(this.python, ["-m", "tacit", ...words, "--json"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    return this.next();
  }

  /** The next line that it prints: of a server, at the start where it listens, then a report of each client. */
  async next() {
    return JSON.parse((await this.lines.next()).value);
  }

  async stop(signal = "SIGTERM") {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await ended;
  }
}

/** A `tacit serve` with a port for TCP and one for WebSockets. */
export class Server extends Process {
  static async start(model, ...options) {
    const server = new Server();
    const where = ["--listen", "127.0.0.1:0", "--websocket", "127.0.0.1:0"];
    const { listening, websocket, pin, page } = await server.begin("serve", model, ...where, ...options);
    [server.address, server.pin, server.page] = [listening, pin, page];
    server.url = `${pin ? "wss" : "ws"}://${websocket}`;
    return server;
  }
}
