// What leaves the page and what comes: totals by phase, a chart over time, and the frames themselves.

import { drawn, duration, made, one, size } from "./dom.js";

const PHASES = ["setup", "offline", "online"];
/** Frames that are listed, the last ones, and bytes that are kept of each. */
const LISTED = 200;
const KEPT = 4608;
const HEX_ROWS = 16;
/** A space that lists keep. */
const WIDE = "\u00a0";
const CHART = { left: 68, right: 8, top: 10, bottom: 26, width: 480, height: 220 };

/** The traffic of one session after another. */
export function traffic() {
  let session = fresh();
  let shown = null;
  const list = one("frames");
  list.addEventListener("change", () => showFrame(session.frames.find(({ number }) => String(number) === list.value)));

  function fresh() {
    const phases = Object.fromEntries(PHASES.map((phase) => [phase, { sent: 0, received: 0, seconds: 0 }]));
    return { start: performance.now(), since: performance.now(), phase: "setup", phases, points: [[0, 0, 0]], bands: [], frames: [], count: 0, over: false };
  }

  function lap() {
    const now = performance.now();
    session.phases[session.phase].seconds += (now - session.since) / 1000;
    session.since = now;
    return (now - session.start) / 1000;
  }

  return {
    begin() {
      session = fresh();
      list.replaceChildren();
      shown = null;
      this.draw();
    },
    /** Notes that a phase has begun. */
    enter(phase) {
      const at = lap();
      if (phase === session.phase) return;
      session.phase = phase;
      session.bands.push([at, phase]);
    },
    /** Notes bytes as they pass. */
    pass(direction, bytes) {
      const at = lap();
      session.phases[session.phase][direction] += bytes.length;
      const [, sent, received] = session.points.at(-1);
      session.points.push(direction === "sent" ? [at, sent + bytes.length, received] : [at, sent, received + bytes.length]);
      if (direction !== "sent") return;
      session.count += 1;
      session.frames.push({ number: session.count, at, phase: session.phase, length: bytes.length, head: bytes.slice(0, KEPT) });
      if (session.frames.length > LISTED) session.frames.shift();
    },
    /** Takes over what the report says of phases. */
    end(report) {
      lap();
      session.over = true;
      for (const phase of report ? PHASES : []) {
        const { bytes, seconds } = report.phases[phase];
        session.phases[phase] = { sent: bytes.client_to_server, received: bytes.server_to_client, seconds };
      }
      this.draw();
    },
    draw() {
      showPhases(session.phases);
      showChart(session);
      const last = session.frames.at(-1)?.number ?? 0;
      if (shown !== last || session.over) {
        shown = last;
        // A frame with much in it shows most.
        const largest = session.frames.reduce((best, frame) => (frame.length > best.length ? frame : best), session.frames[0]);
        const chosen = session.over ? largest : session.frames.at(-1);
        const listed = session.frames.map(({ number, phase, length }) => made("option", { value: number }, [String(number).padStart(4, WIDE), phase.padEnd(7, WIDE), size(length)].join(WIDE + WIDE)));
        list.replaceChildren(...listed.reverse());
        if (chosen) list.value = String(chosen.number);
        showFrame(chosen);
      }
    },
  };
}

function showPhases(phases) {
  const rows = [...PHASES.map((phase) => [phase, phases[phase]])];
  const total = { sent: 0, received: 0, seconds: 0 };
  for (const [, cost] of rows) for (const key of Object.keys(total)) total[key] += cost[key];
  const cells = ({ sent, received, seconds }) => [size(sent), size(received), duration(seconds)].map((text) => made("td", {}, text));
  one("phases").replaceChildren(...[...rows, ["total", total]].map(([name, cost]) => made("tr", {}, made("th", { scope: "row" }, name), ...cells(cost))));
}

/** Cumulative bytes over time. */
function showChart({ points, bands }) {
  const { left, right, top, bottom, width, height } = CHART;
  const [, sent, received] = points.at(-1);
  const [most, end] = [Math.max(sent, received, 1), Math.max(points.at(-1)[0], 0.001)];
  const x = (at) => left + (at / end) * (width - left - right);
  const y = (bytes) => height - bottom - (bytes / most) * (height - top - bottom);
  const parts = [];
  // Each input of a session is prepared and then runs.
  for (const [place, [at, phase]] of bands.entries()) {
    if (phase !== "online") continue;
    const [from, to] = [at, bands[place + 1]?.[0] ?? end].map((seconds) => x(Math.min(seconds, end)));
    parts.push(drawn("rect", { class: "band", x: from, y: top, width: Math.max(to - from, 0), height: height - top - bottom }));
    if (to - from > 50) parts.push(drawn("text", { x: from + 6, y: top + 16 }, "online"));
  }
  for (const share of [0, 0.5, 1]) {
    parts.push(drawn("line", { class: "axis", x1: left, x2: width - right, y1: y(share * most), y2: y(share * most) }));
    if (sent + received > 0) parts.push(drawn("text", { x: left - 6, y: y(share * most) + 4, "text-anchor": "end" }, share === 0 ? "0" : size(share * most)));
  }
  parts.push(drawn("text", { x: left, y: height - 8 }, "0 s"));
  if (points.length > 1) parts.push(drawn("text", { x: width - right, y: height - 8, "text-anchor": "end" }, duration(end)));
  const step = Math.max(1, Math.floor(points.length / 400));
  const kept = points.filter((_, at) => at % step === 0 || at === points.length - 1);
  for (const [name, column] of [["received", 2], ["sent", 1]]) {
    parts.push(drawn("polyline", { class: name, points: kept.map((point) => `${x(point[0]).toFixed(1)},${y(point[column]).toFixed(1)}`).join(" ") }));
  }
  one("chart").replaceChildren(...parts);
  one("chart").setAttribute("aria-label", `${size(sent)} sent and ${size(received)} received in ${duration(end)}`);
}

/** A frame as grey pixels and hexadecimal digits. */
function showFrame(frame) {
  const canvas = one("noise");
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  for (let at = 0; at < image.data.length / 4; at += 1) {
    const known = frame && at < frame.head.length;
    image.data.fill(known ? frame.head[at] : 0, 4 * at, 4 * at + 3);
    image.data[4 * at + 3] = known ? 255 : 0;
  }
  context.putImageData(image, 0, 0);
  if (!frame) {
    one("hex").textContent = "Nothing has left this page yet.";
    return;
  }
  const rows = [];
  for (let at = 0; at < Math.min(frame.head.length, 16 * HEX_ROWS); at += 16) {
    const bytes = [...frame.head.subarray(at, at + 16)].map((byte) => byte.toString(16).padStart(2, "0"));
    rows.push(`${at.toString(16).padStart(4, "0")}  ${bytes.slice(0, 8).join(" ")}  ${bytes.slice(8).join(" ")}`);
  }
  one("hex").textContent = rows.join("\n");
  one("noise-text").textContent = `Frame ${frame.number}: ${size(frame.length)} after ${duration(frame.at)}. Each pixel is a byte; masked bytes look like noise.`;
}
