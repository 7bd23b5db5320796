// Tabs, as the ARIA practices describe them: arrow keys choose, Tab goes on to the panel.

import { made, one } from "./dom.js";

/** Makes tabs of [name, title] pairs; `chosen` is called with the name of the one that is shown. */
export function tabs(all, chosen) {
  const list = one("tabs");
  const buttons = all.map(([name, title]) =>
    made("button", { type: "button", id: `tab-${name}`, role: "tab" }, title),
  );
  list.replaceChildren(...buttons);
  list.hidden = all.length < 2;

  function choose(place, focus) {
    buttons.forEach((button, at) => {
      button.setAttribute("aria-selected", String(at === place));
      button.setAttribute("aria-controls", `panel-${all[at][0]}`);
      button.tabIndex = at === place ? 0 : -1;
    });
    for (const panel of document.querySelectorAll("[role=tabpanel]")) panel.hidden = panel.id !== `panel-${all[place][0]}`;
    if (focus) buttons[place].focus();
    chosen(all[place][0]);
  }

  buttons.forEach((button, place) => {
    button.onclick = () => choose(place, false);
    button.onkeydown = ({ key }) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: all.length - 1 }[key];
      if (to !== undefined) choose((to + all.length) % all.length, true);
    };
  });
  if (all.length > 0) choose(0, false);
}
