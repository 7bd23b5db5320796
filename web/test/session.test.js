// Sessions that stay open between inputs, in Node against `tacit serve`.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Tacit } from "tacit-client";

import { fails, withClient } from "./asking.js";
import { compiled, digits, Server, tacit } from "./serving.js";

let exact;
let inputs;
let server;

before(async () => {
  exact = compiled("exact");
  const { data, shape, file } = digits(3);
  const size = data.length / 3;
  inputs = Array.from({ length: 3 }, (_, at) => ({ data: data.slice(at * size, (at + 1) * size), shape: shape.slice(1) }));
  inputs.file = file;
  server = await Server.start(exact, "--plaintext", "--offline", "2");
});

after(() => server.stop());

/** Waits until so many runs are prepared. */
async function prepared(session, count) {
  const until = performance.now() + 60_000;
  while (session.ready !== count) {
    assert.ok(performance.now() < until, `${session.ready} runs are prepared, not ${count}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("a session prepares in its pauses, and its results are those of the interpreter", async () => {
  const simulated = tacit("simulate", exact, inputs.file);
  await withClient(server.url, {}, async (client) => {
    const session = await client.session(3);
    const opened = session.report;
    await prepared(session, 2);
    const [classes, reports] = [[], []];
    // Two stay prepared as long as two inputs are left.
    for (const [at, input] of inputs.entries()) {
      await prepared(session, Math.min(2, 3 - at));
      const answer = await session.predict(input);
      classes.push(...answer.classes);
      reports.push(answer.report);
    }
    assert.deepEqual(classes, simulated.output);
    const online = ({ phases }) => phases.online.bytes.client_to_server + phases.online.bytes.server_to_client;
    assert.ok(opened.phases.online === undefined || online(opened) === 0);
    assert.equal(online(reports[2]), 3 * online(reports[0]));
    const report = await session.finish();
    const other = await server.next();
    assert.equal(other.end, "finished");
    assert.deepEqual([report.bytes, report.rounds], [other.bytes, other.rounds]);
    await fails(session.predict(inputs[0]), "misuse", /finished/);
    assert.deepEqual(await session.finish(), report);
    // What a session leaves serves the next one.
    assert.equal((await client.predict(inputs[0])).report.resumed, true);
    assert.equal((await server.next()).end, "finished");
  });
});

test("inputs that do not fit cost nothing, and there is one session at a time", async () => {
  await withClient(server.url, {}, async (client) => {
    await fails(client.session(0), "misuse", /1 to 1000000 inputs/);
    const session = await client.session(1);
    await fails(client.predict(inputs[0]), "misuse", /a session is open/);
    await fails(client.session(1), "misuse", /a session is open/);
    await fails(session.predict([1, 2, 3]), "misuse", /shape/);
    await fails(session.predict([[1], [2, 3]]), "misuse", /same length/);
    const [first, second] = await Promise.allSettled([session.predict(inputs[0]), session.predict(inputs[1])]);
    assert.equal(first.value.classes.length, 1);
    assert.match(second.reason.message, /opened for 1 inputs/);
    await session.finish();
    assert.equal((await server.next()).end, "finished");
  });
});

test("a session that is given up costs the server that session alone", async () => {
  await withClient(server.url, {}, async (client) => {
    const session = await client.session(3);
    const lost = session.predict(inputs[0], { onProgress: () => session.close() });
    await fails(lost, "misuse", /given up/);
    await fails(session.predict(inputs[0]), "misuse", /given up/);
    assert.equal((await server.next()).end, "failed");
    const { classes } = await client.predict(inputs[0]);
    assert.equal(classes.length, 1);
    assert.equal((await server.next()).end, "finished");
  });
  const client = await Tacit.connect(server.url);
  const session = await client.session(2);
  client.close();
  await fails(session.predict(inputs[0]), "misuse", /closed/);
  assert.equal((await server.next()).end, "failed");
});

test("a server that is gone in a pause is told at the next input, and again", async () => {
  const other = await Server.start(exact, "--plaintext");
  await withClient(other.url, {}, async (client) => {
    const session = await client.session(2);
    await session.predict(inputs[0]);
    assert.equal(session.ready, 0);
    await other.stop("SIGKILL");
    await fails(session.predict(inputs[1]), "transport", /./);
    await fails(session.predict(inputs[1]), "transport", /./);
  });
});
