// The client in Node against `tacit serve`: the results of the interpreter, the bytes and rounds of the native client.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Tacit } from "tacit-client";

import { fails, withClient } from "./asking.js";
import { compiled, cost, digits, Server, tacit } from "./serving.js";

let exact;
let three;
let server;

before(async () => {
  exact = compiled("exact");
  three = digits(3);
  server = await Server.start(exact, "--plaintext");
});

after(() => server.stop());

/** Integers of an answer as rows. */
function rows({ outputs, classes }) {
  const columns = outputs.length / classes.length;
  return classes.map((_, row) => [...outputs.slice(row * columns, (row + 1) * columns)].map(Number));
}

test("results are those of the interpreter, bytes and rounds those of the native client", async () => {
  const answer = await withClient(server.url, { keepKeys: false }, (client) => client.predict(three));
  const own = await server.next();
  const simulated = tacit("simulate", exact, three.file);
  const native = tacit("predict", three.file, "--server", server.address, "--plaintext");
  const others = await server.next();
  assert.deepEqual(answer.classes, simulated.output);
  assert.deepEqual(rows(answer), simulated.logits);
  assert.deepEqual([...answer.logits[0]], simulated.logits[0].map((logit) => logit * simulated.output_scale));
  assert.deepEqual(cost(answer.report), cost(native));
  assert.deepEqual(cost(own), cost(others));
  assert.equal(own.end, "finished");
  assert.equal(answer.report.digest ?? native.digest, native.digest);
});

test("a session that comes back resumes, and one input needs no leading axis", async () => {
  await withClient(server.url, {}, async (client) => {
    const size = three.data.length / three.shape[0];
    const one = { data: three.data.slice(0, size), shape: three.shape.slice(1) };
    const seen = [];
    const first = await client.predict(one, { onProgress: (news) => seen.push(news) });
    const [second, nested] = await Promise.all([client.predict(one), client.predict(reshaped([...one.data], one.shape))]);
    assert.deepEqual([second.classes, nested.classes], [first.classes, first.classes]);
    assert.deepEqual([first.report.resumed ?? false, second.report.resumed], [false, true]);
    assert.ok(seen.at(-1).received > 0 && seen.some(({ phase }) => phase === "done"));
    for (let count = 0; count < 3; count += 1) assert.equal((await server.next()).end, "finished");
  });
});

/** Numbers as arrays in each other. */
function reshaped(values, shape) {
  if (shape.length === 1) return values;
  const size = values.length / shape[0];
  return Array.from({ length: shape[0] }, (_, at) => reshaped(values.slice(at * size, (at + 1) * size), shape.slice(1)));
}

test("errors name the guilty side", async () => {
  await fails(Tacit.connect("http://127.0.0.1:1"), "misuse", /wss/);
  await fails(Tacit.connect("ws://example.org:7000"), "misuse", /this machine/);
  await fails(Tacit.connect(server.url, { pin: "abc" }), "misuse", /64 hex/);
  await fails(Tacit.connect(server.url, { colour: 1 }), "misuse", /colour/);
  await fails(Tacit.connect(server.url, { planDigest: "12" }), "misuse", /64 hex/);
  await withClient("ws://127.0.0.1:9", {}, (client) => fails(client.predict(three), "transport", /ECONNREFUSED/));
  await withClient(server.url, {}, async (client) => {
    await fails(client.predict([[1], [2, 3]]), "misuse", /same length/);
    await fails(client.predict([1, 2, 3]), "misuse", /shape/);
    assert.equal((await server.next()).end, "failed");
    const { classes } = await client.predict(three);
    assert.equal(classes.length, 3);
    assert.equal((await server.next()).end, "finished");
  });
  await withClient(server.url, { graphDigest: "0".repeat(64) }, async (client) => {
    await fails(client.predict(three), "transport", /pinned/);
    assert.equal((await server.next()).end, "failed");
  });
  await withClient(server.url, { model: "other" }, async (client) => {
    await fails(client.predict(three), "refused", /no such model/);
    assert.equal((await server.next()).end, "refused");
  });
});

test("a client that is closed costs the server its session", async () => {
  const client = await Tacit.connect(server.url);
  const lost = client.predict(three, { onProgress: () => client.close() });
  await fails(lost, "misuse", /closed/);
  assert.notEqual((await server.next()).end, "finished");
});

test("a server's key is pinned", async () => {
  const secure = await Server.start(exact);
  try {
    const { classes } = await withClient(secure.url, { pin: secure.pin }, (client) => client.predict(three));
    assert.equal(classes.length, 3);
    assert.equal((await secure.next()).end, "finished");
    const other = `${secure.pin.slice(0, 63)}${secure.pin.endsWith("0") ? "1" : "0"}`;
    await withClient(secure.url, { pin: other }, (client) => fails(client.predict(three), "transport", /pinned/));
    await withClient(secure.url, {}, (client) => fails(client.predict(three), "transport", /certificate/));
  } finally {
    await secure.stop();
  }
});

test("budgets and a server that is killed are told as they are", async () => {
  const small = await Server.start(exact, "--plaintext", "--ledger", "ledger.sqlite", "--budget", "total=2");
  await withClient(small.url, {}, async (client) => {
    await fails(client.predict(three), "refused", /budget|inputs/);
    assert.equal((await small.next()).refused, "budget");
    let killed = false;
    const onProgress = ({ received }) => {
      if (received > 20_000 && !killed) {
        killed = true;
        small.stop("SIGKILL");
      }
    };
    const size = three.data.length / three.shape[0];
    await fails(client.predict({ data: three.data.slice(0, size), shape: three.shape.slice(1) }, { onProgress }), "transport", /./);
  });
});
