// Progress by layer.

import { duration, made, one, size } from "./dom.js";

/** Shows which layer runs; `layers` are those of the model. */
export function layers(all) {
  const items = all.map(({ name, operator }) =>
    made("li", {}, made("span", { className: "name" }, name.replaceAll(".", ".\u200b")), made("span", { className: "cost" }, operator || "the server's share of the answer")),
  );
  one("layers").replaceChildren(...items);
  one("bar").max = items.length;
  one("bar").value = 0;

  /** Keeps the layer that runs in sight, of a list that scrolls. */
  function follow(item) {
    const list = one("layers");
    const place = item.offsetTop - list.offsetTop;
    if (place < list.scrollTop || place + item.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = place;
  }

  function mark(active, done) {
    items.forEach((item, place) => {
      item.classList.toggle("is-active", place === active);
      item.classList.toggle("is-done", place < done);
      if (place === active) {
        item.setAttribute("aria-current", "step");
        follow(item);
      }
      if (place !== active) item.removeAttribute("aria-current");
    });
    one("bar").value = done;
  }

  return {
    reset: () => {
      mark(-1, 0);
      items.forEach((item, place) => (item.lastChild.textContent = all[place].operator || "the server's share of the answer"));
    },
    /** Notes what runs: a phase, and a layer or none. */
    at: ({ phase, layer }) => (phase === "online" && layer !== null ? mark(layer, layer) : mark(-1, 0)),
    /** Shows what each layer took, by the report. */
    end: (report) => {
      mark(-1, items.length);
      items.forEach((item, place) => {
        const own = report.layers.filter(({ name }) => name === all[place].name);
        if (own.length === 0) return;
        const bytes = own.reduce((sum, { bytes: both }) => sum + both.client_to_server + both.server_to_client, 0);
        const seconds = own.reduce((sum, layer) => sum + layer.seconds, 0);
        item.lastChild.textContent = bytes === 0 ? "no traffic" : `${size(bytes)}, ${duration(seconds)}`;
      });
    },
    stop: () => mark(-1, 0),
    /** What runs, in words. */
    words: ({ phase, layer }) => {
      if (phase === "setup") return "Agreeing on keys …";
      if (phase === "offline") return "Preparing randomness …";
      return layer === null ? "Sending the input, masked …" : `Layer ${layer + 1} of ${items.length}: ${all[layer]?.name ?? ""}`;
    },
  };
}
