// The drawing pad: strokes, by pointer or keyboard, and the small picture that they become.

import { resized } from "./client/resample.js";
import { one } from "./dom.js";

/** The pen's width, as a share of the pad. */
const PEN = 0.075;
/** The pen's way at a press of an arrow key. */
const STEP = 0.025;
/** The share of the picture's side that a drawing fills, as digits of MNIST do. */
const FILLED = 20 / 28;
/** Pixels of the drawing for each of the picture, along a side. */
const FINE = 8;

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Watches the pad; `changed` is called when the strokes have changed. Gives `picture(side)` and `clear()`. */
export function pad(changed) {
  const canvas = one("pad");
  const context = canvas.getContext("2d");
  const strokes = [];
  const pen = { at: [0.5, 0.5], down: false, shown: false };

  function say(text) {
    one("pad-said").textContent = text;
  }

  function show() {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    paint(context, strokes, canvas.width, [0, 0]);
    if (pen.shown) {
      context.strokeStyle = pen.down ? "#7fc8d1" : "#9aa4aa";
      context.lineWidth = 3;
      context.beginPath();
      context.arc(pen.at[0] * canvas.width, pen.at[1] * canvas.height, 14, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  function update() {
    show();
    changed();
  }

  function place(event) {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return [(event.clientX - left) / width, (event.clientY - top) / height];
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    pen.shown = false;
    strokes.push([place(event)]);
    show();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!canvas.hasPointerCapture(event.pointerId)) return;
    for (const part of event.getCoalescedEvents?.() ?? [event]) strokes.at(-1).push(place(part));
    strokes.at(-1).push(place(event));
    show();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => canvas.hasPointerCapture(event.pointerId) && update());
  }

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = ARROWS[event.key];
    if (way) {
      pen.at = pen.at.map((old, axis) => Math.min(1, Math.max(0, old + STEP * (event.shiftKey ? 3 : 1) * way[axis])));
      if (pen.down) strokes.at(-1).push([...pen.at]);
    } else if (event.key === " ") {
      pen.down = !pen.down;
      if (pen.down) strokes.push([[...pen.at]]);
      say(pen.down ? "The pen is down." : "The pen is up.");
    } else if (event.key === "Backspace") {
      undo();
    } else {
      return;
    }
    event.preventDefault();
    pen.shown = true;
    update();
  });
  canvas.addEventListener("focus", () => {
    pen.shown = canvas.matches(":focus-visible");
    show();
  });
  canvas.addEventListener("blur", () => {
    [pen.shown, pen.down] = [false, false];
    show();
  });

  function undo() {
    strokes.pop();
    pen.down = false;
    update();
  }

  function clear() {
    strokes.length = 0;
    pen.down = false;
    update();
    say("The pad is empty.");
  }

  one("undo").addEventListener("click", undo);
  one("clear").addEventListener("click", clear);
  show();
  return { clear, picture: (side) => (strokes.length === 0 ? null : picture(strokes, side)) };
}

/** Draws strokes with light ink; `shift` is where the pad's corner lies, and `scale` its side. */
function paint(context, strokes, scale, [left, top], width = PEN) {
  context.strokeStyle = "#fff";
  context.lineCap = "round";
  context.lineJoin = "round";
  context.lineWidth = width * scale;
  for (const points of strokes) {
    context.beginPath();
    context.moveTo(left + points[0][0] * scale, top + points[0][1] * scale);
    for (const [x, y] of points) context.lineTo(left + x * scale, top + y * scale);
    // A dot is a line without length.
    context.lineTo(left + points.at(-1)[0] * scale + 0.01, top + points.at(-1)[1] * scale);
    context.stroke();
  }
}

/** RGBA pixels of a side: the drawing in a size and a place as digits of MNIST have, so that it does not matter where it was drawn. */
function picture(strokes, side) {
  const points = strokes.flat();
  const edges = [0, 1].map((axis) => points.map((point) => point[axis])).map((all) => [Math.min(...all) - PEN / 2, Math.max(...all) + PEN / 2]);
  const longest = Math.max(...edges.map(([low, high]) => high - low), 4 * PEN);
  const large = side * FINE;
  const scale = (large * FILLED) / longest;
  const corner = edges.map(([low, high]) => large / 2 - ((low + high) / 2) * scale);
  const context = new OffscreenCanvas(large, large).getContext("2d", { willReadFrequently: true });
  context.fillRect(0, 0, large, large);
  paint(context, strokes, scale, corner, Math.max(PEN, (1.6 * FINE) / scale));
  const { data } = context.getImageData(0, 0, large, large);
  return balanced(resized({ data, width: large, height: large, channels: 4 }, side, side, "bilinear"));
}

/** The picture moved so that the centre of its ink is in the middle. */
function balanced({ data, width, height }) {
  let [sum, across, down] = [0, 0, 0];
  for (let at = 0; at < width * height; at += 1) {
    sum += data[4 * at];
    across += data[4 * at] * (at % width);
    down += data[4 * at] * Math.floor(at / width);
  }
  const moves = [across, down].map((all, axis) => Math.round(([width, height][axis] - 1) / 2 - all / (sum || 1)));
  const out = new ImageData(width, height);
  for (let at = 0; at < width * height; at += 1) {
    const [x, y] = [(at % width) - moves[0], Math.floor(at / width) - moves[1]];
    const inside = x >= 0 && x < width && y >= 0 && y < height;
    out.data.fill(inside ? data[4 * (y * width + x)] : 0, 4 * at, 4 * at + 3);
    out.data[4 * at + 3] = 255;
  }
  return out;
}
