// The page: an input, a session, its answer.

import * as answer from "./answer.js";
import { inputOf } from "./client/preprocessing.js";
import { eachFrame, made, one } from "./dom.js";
import { pad as watchPad } from "./draw.js";
import { drawable, layersOf, length, models, preprocessingOf } from "./facts.js";
import { layers as showLayers } from "./progress.js";
import * as sentences from "./sentences.js";
import * as session from "./session.js";
import * as sources from "./sources.js";
import { tabs } from "./tabs.js";
import { traffic as watchTraffic } from "./traffic.js";

const LEARNS = { output: "all outputs of the model", label: "the best class", bucket: "the bucket of the score" };

let model = null;
let input = null;
let running = false;
let shown = "";
let progress = null;
/** The input of each kind, so that a tab keeps what it has. */
const inputs = new Map();
const traffic = watchTraffic();

function ready() {
  one("ask").disabled = running || input === null;
  one("stop").hidden = !running;
  document.body.toggleAttribute("data-running", running);
}

function fail(error) {
  one("input-said").textContent = error.message;
  take(shown, null);
}

/** Takes an input of a kind; null for none. */
function take(kind, given, image = null) {
  inputs.set(kind, { given, image });
  if (kind !== shown) return;
  input = given;
  if (given !== null) one("input-said").textContent = "";
  preview(image);
  ready();
}

/** Takes RGBA pixels, through the model's preprocessing. */
function takePixels(kind, pixels) {
  try {
    const made_ = inputOf(pixels, preprocessingOf(model));
    if (String(made_.shape) !== String(model.input.shape)) throw new Error(`the picture becomes an input of shape ${made_.shape.join(" × ")}, and the model takes ${model.input.shape.join(" × ")}`);
    take(kind, made_, made_);
  } catch (error) {
    fail(error);
  }
}

/** Shows what the model gets, one pixel for each of its own. */
function preview(image) {
  one("seen").hidden = image === null;
  if (image === null) return;
  const [channels, height, width] = image.shape;
  const canvas = Object.assign(one("preview"), { width, height });
  const { scale, mean, std, channel_order: order } = { mean: [0], std: [1], ...preprocessingOf(model) };
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(width, height);
  for (let at = 0; at < width * height; at += 1) {
    for (let colour = 0; colour < 3; colour += 1) {
      const plane = channels === 1 ? 0 : order === "BGR" ? 2 - colour : colour;
      const value = image.data[plane * width * height + at] * (std[plane] ?? std[0]) + (mean[plane] ?? mean[0]);
      pixels.data[4 * at + colour] = Math.round(value / (scale ?? 1));
    }
    pixels.data[4 * at + 3] = 255;
  }
  context.putImageData(pixels, 0, 0);
  one("preview-text").textContent = `What the model gets: ${width} × ${height} ${channels === 1 ? "grey" : "colour"} pixels`;
}

/** Shows a model: what it takes, what is public of it. */
function choose(chosen) {
  model = chosen;
  inputs.clear();
  const classes = model.labels.length > 0 ? `, ${model.labels.length} classes` : "";
  one("model-line").textContent = `Model ${model.name}: input ${model.input.shape.join(" × ")}${classes}`;
  document.title = `${model.name} · Tacit`;
  one("learns").textContent = LEARNS[model.reveal] ?? "the best class and its probability";
  const digests = [["Plan", model.plan_digests.length === 1 ? model.plan_digests[0] : null], ["Graph", model.graph_digest], ["Commitment", model.commitment]];
  showDigests(digests);
  progress = showLayers(layersOf(model));
  answer.clear();
  one("state").textContent = "Nothing was asked yet.";
  one("numbers-help").textContent = `The model takes ${length(model)} numbers (${model.input.shape.join(" × ")}).`;
  sentences.explain(model);
  // Photographs in colour are what such models were trained with.
  one("invert").parentElement.hidden = preprocessingOf(model)?.channel_order !== "L";
  const pictures = preprocessingOf(model) !== null && model.text === null;
  tabs(
    [
      ...(drawable(model) === null ? [] : [["draw", "Draw"]]),
      ...(pictures ? [["picture", "Picture"], ["camera", "Camera"]] : []),
      ...(sentences.readsText(model) ? [["text", "Sentences"]] : []),
      ...(length(model) <= 4096 && model.text === null ? [["numbers", "Numbers"]] : []),
    ],
    (name) => {
      shown = name;
      camera.off();
      const kept = inputs.get(name) ?? { given: null, image: null };
      take(name, kept.given, kept.image);
      one("input-said").textContent = "";
    },
  );
}

function showDigests(pairs) {
  const known = pairs.filter(([, digest]) => digest);
  one("digests").replaceChildren(...known.flatMap(([name, digest]) => [made("dt", {}, name), made("dd", {}, digest)]));
}

async function ask() {
  if (input === null || running) return;
  const asked = input;
  running = true;
  ready();
  answer.clear();
  progress.reset();
  traffic.begin();
  if (one("answer").getBoundingClientRect().top > window.innerHeight - 80) one("answer").scrollIntoView({ block: "start" });
  const state = one("state");
  state.textContent = "Connecting …";
  const update = eachFrame(() => running && traffic.draw());
  const say = throttled((text) => running && (state.textContent = text));
  const watching = {
    onBytes: (direction, bytes) => {
      traffic.pass(direction, bytes);
      update();
    },
    onProgress: ({ phase, step, waiting }) => {
      if (phase === "waiting") say(`The server is busy: ${waiting} before you.`);
      if (phase !== "running" || step === null) return;
      traffic.enter(step.phase);
      progress.at(step);
      say(progress.words(step));
      update();
    },
  };
  try {
    const prediction = await session.ask(model.name, asked, watching);
    running = false;
    progress.end(prediction.report);
    traffic.end(prediction.report);
    answer.show(prediction, model, asked);
    one("learns").textContent = LEARNS[prediction.report.reveal] ?? one("learns").textContent;
    const { digest } = prediction.report;
    showDigests([["Plan", digest ?? model.plan_digests[0]], ["Graph", model.graph_digest], ["Commitment", model.commitment]]);
    state.textContent = `The answer is ${asked.sentences ? "here" : one("best").textContent}, after ${prediction.report.seconds.toFixed(1)} s${prediction.report.resumed ? ", in a session that went on from the last" : ""}.`;
  } catch (error) {
    running = false;
    progress.stop();
    traffic.end(null);
    if (error.message === "the client is closed") {
      state.textContent = "Stopped. The server knows that somebody asked, and nothing else.";
    } else {
      state.textContent = "There is no answer.";
      one("problem").hidden = false;
      one("problem").replaceChildren(...session.explained(error).map((text) => made("p", {}, text)));
    }
  }
  ready();
}

/** Calls `act` with the latest text, at most twice a second, so that screen readers keep up. */
function throttled(act) {
  let [last, next] = [null, null];
  return (text) => {
    if (next === null) next = setTimeout(() => {
      next = null;
      act(last);
    }, 300);
    last = text;
  };
}

const pad = watchPad(() => {
  const side = drawable(model);
  const picture = side === null ? null : pad.picture(side);
  if (picture === null) take("draw", null);
  else takePixels("draw", picture);
});
sources.picture((pixels) => takePixels("picture", pixels), fail);
const camera = sources.camera((pixels) => takePixels("camera", pixels), fail);
sources.numbers(() => length(model), (values) => take("numbers", { data: values, shape: model.input.shape }), fail);
sentences.watch(() => model, (made_) => take("text", made_), fail);
one("ask").addEventListener("click", ask);
one("stop").addEventListener("click", session.stop);
one("fields").addEventListener("submit", (event) => event.preventDefault());

/** Pins and the model's name may stand behind the `#` of the address, which is not sent to the server. */
function fromAddress(all) {
  const said = new URLSearchParams(location.hash.slice(1));
  const fields = { plan: "pin-plan", graph: "pin-graph", commitment: "pin-commitment" };
  for (const [name, field] of Object.entries(fields)) {
    if (!said.has(name)) continue;
    one(field).value = said.get(name);
    one("access").open = true;
  }
  return all.find(({ name }) => name === said.get("model")) ?? all[0];
}

try {
  const all = await models();
  const first = fromAddress(all);
  one("model-choice").hidden = all.length < 2;
  one("model").replaceChildren(...all.map(({ name }) => made("option", { value: name }, name)));
  one("model").value = first.name;
  one("model").addEventListener("change", ({ target }) => {
    pad.clear();
    choose(all.find(({ name }) => name === target.value));
  });
  choose(first);
  traffic.draw();
  ready();
} catch (error) {
  one("model-line").textContent = `The page cannot start: ${error.message}`;
}
