// The answer: the best classes, as far as the server reveals them.

import { drawn, made, one } from "./dom.js";
import { show as showSentences } from "./sentences.js";

const BEST = 5;

/** Probabilities of logits. */
export function softmax(logits) {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((all, power) => all + power, 0);
  return powers.map((power) => power / sum);
}

const name = (labels, index) => labels[index] ?? `class ${index}`;

/** Shows the prediction of an input. */
export function show(prediction, model, input) {
  const { classes, logits, outputs, report } = prediction;
  const labels = report.labels?.length ? report.labels : model.labels;
  const shape = model.output.shape.filter((length) => length > 1);
  one("result").hidden = false;
  one("classes").replaceChildren();
  one("result-note").textContent = "";
  one("found").hidden = true;
  if (input.sentences) {
    one("best").textContent = showSentences(prediction, input, labels);
    return;
  }
  if (logits === null) {
    const certain = report.certain && outputs.length === 2 ? Number(report.certain) / Number(outputs[1]) : null;
    one("best").textContent = report.reveal === "bucket" ? `bucket ${classes[0]}` : name(labels, classes[0]);
    if (certain !== null) one("classes").append(row(name(labels, classes[0]), certain, percent(certain)));
    one("result-note").textContent = "The server reveals no more than this.";
    return;
  }
  const values = [...logits[0]];
  if (shape.length !== 1) {
    one("best").textContent = values.length === 1 ? values[0].toPrecision(5) : `${values.length} numbers`;
    if (values.length > 1) one("result-note").textContent = `The first are ${values.slice(0, 8).map((value) => value.toPrecision(4)).join(", ")}.`;
    return;
  }
  const shares = softmax(values);
  const order = shares.map((_, index) => index).sort((one_, other) => shares[other] - shares[one_] || one_ - other);
  one("best").textContent = name(labels, classes[0]);
  for (const index of order.slice(0, BEST)) {
    one("classes").append(row(name(labels, index), shares[index], percent(shares[index]), values[index]));
  }
  one("result-note").textContent = "Shares are the softmax of the model's scores, computed in this page.";
}

export const percent = (share) => (share >= 0.9995 ? "> 99.9 %" : share < 0.0005 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);

/** One class with its bar. */
function row(title, share, text, score = null) {
  const bar = drawn("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
  bar.append(drawn("rect", { class: "track", width: 100, height: 8, rx: 1 }));
  bar.append(drawn("rect", { class: "fill", width: Math.max(100 * share, 0.5), height: 8, rx: 1 }));
  const item = made("li", {}, made("span", { className: "name" }, title), made("span", { className: "share" }, text), bar);
  if (score !== null) item.title = `score ${score.toFixed(4)}`;
  return item;
}

/** Hides what an earlier session has shown. */
export function clear() {
  one("result").hidden = true;
  one("problem").hidden = true;
}
