// What tests of the client in Node have in common.

import assert from "node:assert/strict";

import { Tacit, TacitError } from "tacit-client";

/** An error of this kind whose message has these words. */
export function fails(promise, kind, words) {
  return assert.rejects(promise, (error) => {
    assert.ok(error instanceof TacitError, String(error));
    assert.equal(error.kind, kind, error.message);
    assert.match(error.message, words);
    return true;
  });
}

/** What `use` gives of a client, which is closed after it. */
export async function withClient(url, options, use) {
  const client = await Tacit.connect(url, options);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}
