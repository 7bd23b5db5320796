// Sessions with the server that the page comes from.

import { Tacit, TacitError } from "./client/browser.js";
import { one } from "./dom.js";

/** What to do about an error, by the guilty side. */
const ADVICE = {
  misuse: "Change the input or what is under “Access and pins”, and ask again.",
  refused: "The server does not admit you: ask its operator for a token, or for more inputs if your budget is used up.",
  busy: "The server is full or about to stop. Try again in a moment.",
  transport: "The connection was lost or is not the one you asked for. Look whether the server runs and whether your pins are right, then ask again.",
  peer: "The server broke the protocol, and the page stopped. Do not trust it before its operator has explained why.",
  unsupported: "This page cannot run this model; a newer version may.",
  internal: "This is a defect of the page. Reload it.",
};

let client = null;
let key = null;

function options(model) {
  const given = (id) => one(id).value.trim() || undefined;
  return {
    model,
    token: given("token"),
    planDigest: given("pin-plan"),
    graphDigest: given("pin-graph"),
    modelCommitment: given("pin-commitment"),
  };
}

/** Runs one session. The client is kept as long as the options stay, so that a later session begins sooner. */
export async function ask(model, input, watching) {
  const chosen = options(model);
  if (client === null || key !== JSON.stringify(chosen)) {
    stop();
    client = await Tacit.connect(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/`, chosen);
    key = JSON.stringify(chosen);
  }
  try {
    return await client.predict(input, watching);
  } catch (error) {
    if (error.kind === "internal") stop();
    throw error;
  }
}

/** Ends the client, and the session that runs. */
export function stop() {
  client?.close();
  client = null;
}

/** What went wrong, and what to do about it. */
export function explained(error) {
  const kind = error instanceof TacitError ? error.kind : "misuse";
  const wait = error.retryAfter ? ` The server asks to wait ${error.retryAfter} s.` : "";
  return [`${error.message[0].toUpperCase()}${error.message.slice(1)}.`.replace(/\.\.$/, "."), `${ADVICE[kind] ?? ""}${wait}`];
}
