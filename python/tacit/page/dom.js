// Small helpers for the page.

export const one = (id) => document.getElementById(id);

/** An element with properties and children; children that are strings become text. */
export function made(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** An element of SVG with attributes. */
export function drawn(name, attributes = {}, text = null) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

/** Bytes for people, in decimal units. */
export function size(count) {
  if (count >= 1e6) return `${(count / 1e6).toFixed(2)} MB`;
  return count >= 1e3 ? `${(count / 1e3).toFixed(1)} kB` : `${Math.round(count)} B`;
}

/** Seconds for people. */
export function duration(seconds) {
  return seconds >= 1 ? `${seconds.toFixed(2)} s` : `${(seconds * 1e3).toFixed(0)} ms`;
}

/** Calls `act` at most once a frame, with the last arguments. */
export function eachFrame(act) {
  let waiting = null;
  return (...given) => {
    if (waiting === null) requestAnimationFrame(() => {
      const last = waiting;
      waiting = null;
      act(...last);
    });
    waiting = given;
  };
}
