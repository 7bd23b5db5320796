// The models that the bench runs: compiled files, and the inputs of their sessions.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

import { ROOT } from "../test/serving.js";

/** What makes the files that are missing. */
const MAKE = "`make bench-web`";

const folder = path.join(ROOT, "build", "web");

/** Plans are for the link that there is. */
export const LOOPBACK = ["--link", "loopback"];

/** Compiled models by name, cheapest first; `input` is a file of NumPy beside them, `options` are those of the server, or else `LOOPBACK`. */
export const MODELS = {
  mnist: { title: "MNIST, a network of digits", file: path.join(ROOT, "build", "mnist.tacit"), input: path.join(folder, "mnist.npy") },
  mnist400: {
    title: "MNIST, planned for 400 Mbit/s",
    file: path.join(ROOT, "build", "mnist.tacit"),
    input: path.join(folder, "mnist.npy"),
    options: [],
  },
  resnet20: { title: "ResNet-20, CIFAR-10", file: path.join(folder, "resnet20.tacit"), input: path.join(folder, "resnet20.npy") },
  minilm: { title: "all-MiniLM-L6-v2, 32 tokens, public embedding", file: path.join(folder, "minilm.tacit"), input: path.join(folder, "minilm.npy") },
  minilm400: {
    title: "all-MiniLM-L6-v2, planned for 400 Mbit/s",
    file: path.join(folder, "minilm.tacit"),
    input: path.join(folder, "minilm.npy"),
    options: [],
  },
  mobilenet: { title: "MobileNetV2, 224x224", file: path.join(folder, "mobilenet.tacit"), input: path.join(folder, "mobilenet.npy") },
};

/** A model by its name, with the values of its input. */
export function found(name) {
  const model = MODELS[name];
  if (!model) throw new Error(`there is no model \`${name}\`; there are ${Object.keys(MODELS).join(", ")}`);
  for (const file of [model.file, model.input]) {
    if (!existsSync(file)) throw new Error(`there is no ${file}: run ${MAKE}`);
  }
  return { name, ...model, ...array(model.input) };
}

/** The values and shape of a file of NumPy that holds float32 in the order of C. */
function array(file) {
  const bytes = readFileSync(file);
  const start = 10 + bytes.readUInt16LE(8);
  const header = bytes.toString("latin1", 10, start);
  const shape = /'shape': \(([^)]*)\)/.exec(header)?.[1];
  if (!header.includes("'<f4'") || !header.includes("'fortran_order': False") || shape === undefined) {
    throw new Error(`${file} does not hold float32 in the order of C`);
  }
  const data = new Float32Array(bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length));
  return { data, shape: shape.split(",").filter((side) => side.trim()).map(Number) };
}
