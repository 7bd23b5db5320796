// Texts as inputs, and embeddings of results, as tacit.data.text makes them.

import { misuse } from "./errors.js";
import { Tokenizer } from "./tokenizer.js";

/** Longest text, in units of UTF-16; longest header of a file, in bytes. */
const LONGEST_TEXT = 1 << 16;
const LONGEST_HEADER = 1 << 27;
/** What parts two texts that are read together. */
const PAIR = "\t";
const TABLES = ["words", "places", "weight", "bias"];

/** How a model reads text: the file X.text that `tacit compile` writes for clients. */
export class Text {
  #tokenizer;
  #tables;

  /** Reads the bytes of such a file. */
  constructor(bytes) {
    const { entries, tables } = opened(bytes);
    const { tokenizer, sequence, pooling, normalise = false, pad = 0, labels = [] } = entries;
    [this.sequence, this.pooling, this.labels, this.normalise, this.pad] = [sequence, pooling, labels, normalise, pad];
    this.#tokenizer = new Tokenizer(tokenizer);
    this.#tables = tables;
  }

  /** The input {data, shape} of texts, how many tokens each has, and how many of them count; a tab parts two that are read together. */
  inputs(texts) {
    const { sequence } = this;
    const [ids, mask, lengths] = [texts.map(() => new Int32Array(sequence).fill(this.pad)), texts.map(() => new Float32Array(sequence)), []];
    texts.forEach((text, row) => {
      const parts = text.split(PAIR);
      if (text.length > LONGEST_TEXT) throw misuse(`text ${row + 1} has ${text.length} characters; at most ${LONGEST_TEXT} are possible`);
      if (parts.length > 2) throw misuse(`text ${row + 1} has ${parts.length - 1} tabs; one parts a pair, more are not possible`);
      const encoded = this.#tokenizer.encode(parts[0], parts[1] ?? null, sequence);
      ids[row].set(encoded.ids);
      mask[row].fill(1, 0, encoded.ids.length);
      lengths.push(encoded.length);
    });
    const planes = texts.map((_, row) => (this.#tables ? states(this.#tables, ids[row], sequence) : Float32Array.from(ids[row])));
    const height = planes.length > 0 ? planes[0].length / sequence + 1 : 0;
    const data = new Float32Array(texts.length * height * sequence);
    planes.forEach((plane, row) => {
      data.set(plane, row * height * sequence);
      data.set(mask[row], ((row + 1) * height - 1) * sequence);
    });
    return { data, shape: [texts.length, height, sequence], lengths, kept: mask.map((row) => row.reduce((sum, one) => sum + one, 0)) };
  }

  /** Embeddings of real outputs, of texts of which so many tokens count; null where outputs are none. */
  embeddings(logits, kept) {
    if (this.pooling !== "mean" && this.pooling !== "cls") return null;
    return logits.map((row, place) => {
      const share = this.pooling === "mean" ? Math.max(kept[place], 1) : 1;
      const vector = Array.from(row, (value) => value / share);
      return this.normalise ? unit(vector) : vector;
    });
  }
}

/** The cosine of the angle between two vectors. */
export function cosine(first, second) {
  const [one, other] = [first, second].map((vector) => unit(Array.from(vector)));
  return one.reduce((sum, value, at) => sum + value * other[at], 0);
}

function unit(vector) {
  const length = Math.hypot(...vector);
  return length > 0 ? vector.map((value) => value / length) : vector;
}

/** What a file says, and the tables of its public embedding if it has one: safetensors. */
function opened(bytes) {
  try {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const length = Number(view.getBigUint64(0, true));
    if (length > LONGEST_HEADER) throw new Error("its header is too long");
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    const entries = JSON.parse(header.__metadata__.text);
    if (!header.words) return { entries, tables: null };
    const { epsilon } = JSON.parse(header.__metadata__.embedding);
    const table = (name) => {
      const { dtype, shape, data_offsets: [from, to] } = header[name];
      const part = bytes.slice(8 + length + from, 8 + length + to).buffer;
      if (dtype !== (name === "words" ? "F16" : "F32")) throw new Error(`its table ${name} has numbers of kind ${dtype}`);
      return { shape, values: dtype === "F16" ? new Uint16Array(part) : new Float32Array(part) };
    };
    return { entries, tables: { epsilon, ...Object.fromEntries(TABLES.map((name) => [name, table(name)])) } };
  } catch (error) {
    throw misuse(`this is no file X.text of a model of text: ${error.message}`);
  }
}

/** A number of 16 bits. */
function half(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 0) return (sign * fraction) / 2 ** 24;
  return exponent === 31 ? (fraction ? NaN : sign * Infinity) : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Hidden states of tokens, channels first: the norm of the rows of `words` and `places`. */
function states({ words, places, weight, bias, epsilon }, ids, sequence) {
  const width = words.shape[1];
  const out = new Float32Array(width * sequence);
  for (let place = 0; place < sequence; place += 1) {
    if (ids[place] >= words.shape[0]) throw misuse(`a token is not among the ${words.shape[0]} of the embedding; is this model's own file used?`);
    const row = Float64Array.from({ length: width }, (_, at) => half(words.values[ids[place] * width + at]) + places.values[place * width + at]);
    const mean = row.reduce((sum, value) => sum + value, 0) / width;
    const deviation = Math.sqrt(row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width + epsilon);
    for (let at = 0; at < width; at += 1) out[at * sequence + place] = ((row[at] - mean) / deviation) * weight.values[at] + bias.values[at];
  }
  return out;
}
