// Sentences: inputs of models that read text, and what their results say.

import { percent, softmax } from "./answer.js";
import { cosine, Text } from "./client/text.js";
import { made, one } from "./dom.js";

/** Sentences of one session. */
const MOST = 8;
/** What this page can make something of: embeddings, and numbers per class. */
const POOLINGS = ["mean", "cls", "classes"];

/** Readers by their files. */
const readers = new Map();

export const readsText = ({ text }) => text !== null && POOLINGS.includes(text.pooling);

/** How a model reads text: its file, once somebody types. */
function reader({ text: { file } }) {
  if (!readers.has(file)) {
    const loaded = fetch(file).then(async (response) => {
      if (!response.ok) throw new Error(`the server does not give ${file} (${response.status})`);
      return new Text(new Uint8Array(await response.arrayBuffer()));
    });
    loaded.catch(() => readers.delete(file));
    readers.set(file, loaded);
  }
  return readers.get(file);
}

/** Says how the sentences of a model are read. */
export function explain({ text }) {
  if (text === null) return;
  const purpose = text.pooling === "classes" ? "Each gets a class." : "The page compares what they mean, so write two at least.";
  one("texts-help").textContent = `${purpose} Each fills ${text.sequence} tokens, whatever its length; the server learns how many sentences there are, ${MOST} at most at once. A long model takes a minute or more.`;
}

/** Watches the panel; `changed` is called with an input and what it was made of, or with null; `failed` with an error. */
export function watch(model, changed, failed) {
  let newest = 0;
  one("texts").addEventListener("input", async ({ target }) => {
    const mine = (newest += 1);
    const lines = target.value.split("\n").map((line) => line.trim()).filter(Boolean);
    try {
      if (lines.length > MOST) throw new Error(`there are ${lines.length} sentences; at most ${MOST} are asked about at once`);
      const text = await reader(model());
      if (mine !== newest) return;
      if (lines.length === 0) return changed(null);
      const input = text.inputs(lines);
      changed({ data: input.data, shape: input.shape, sentences: lines, kept: input.kept, reader: text });
      const long = input.lengths.findIndex((length) => length > text.sequence);
      if (long >= 0) one("input-said").textContent = `Sentence ${long + 1} has ${input.lengths[long]} tokens and is cut to ${text.sequence}.`;
    } catch (error) {
      if (mine === newest) failed(error);
    }
  });
}

/** Shows the results of sentences; gives the answer in a few words. */
export function show({ classes, logits }, { sentences, kept, reader: text }, labels) {
  const vectors = logits === null ? null : text.embeddings(logits, kept);
  one("found").hidden = false;
  if (vectors === null) return showClasses(classes, logits, sentences, labels);
  const cosines = vectors.map((first) => vectors.map((second) => cosine(first, second)));
  const head = made("tr", {}, made("th", { scope: "col" }, "Sentence"), ...sentences.map((_, place) => made("th", { scope: "col" }, String(place + 1))));
  const rows = cosines.map((row, place) =>
    made("tr", {}, made("th", { scope: "row" }, `${place + 1}. ${sentences[place]}`), ...row.map((value) => made("td", {}, value.toFixed(3)))),
  );
  one("found").replaceChildren(made("table", {}, made("caption", {}, "Cosine of the meanings: 1 is the same, 0 is unrelated"), made("thead", {}, head), made("tbody", {}, ...rows)));
  const pairs = cosines.flatMap((row, first) => row.slice(0, first).map((value, second) => [value, second + 1, first + 1]));
  if (pairs.length === 0) return "An embedding; write a second sentence to compare";
  const [, first, second] = pairs.reduce((best, pair) => (pair[0] > best[0] ? pair : best));
  return `Sentences ${first} and ${second} are nearest`;
}

function showClasses(classes, logits, sentences, labels) {
  const name = (index) => labels[index] ?? `class ${index}`;
  const rows = sentences.map((sentence, place) => {
    const share = logits === null ? "" : percent(softmax([...logits[place]])[classes[place]]);
    return made("tr", {}, made("th", { scope: "row" }, sentence), made("td", {}, name(classes[place])), made("td", {}, share));
  });
  one("found").replaceChildren(made("table", {}, made("tbody", {}, ...rows)));
  return sentences.length === 1 ? name(classes[0]) : `${sentences.length} answers`;
}
