// The client in Node at the door of a fleet: it follows tickets, comes back, tries again, and is told what goes wrong.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { test } from "node:test";

import { Tacit } from "tacit-client";

import { fails, withClient } from "./asking.js";
import { Door } from "./fleet.js";
import { compiled, digits, folder, ROOT, tacit } from "./serving.js";

const model = compiled("exact");
const one = digits(1);
const { output: expected } = tacit("simulate", model, one.file);

/** A fleet of servers with these names, for as long as `use` takes. */
async function fleet(name, names, options, use) {
  const identity = options.includes("--plaintext") ? [] : ["--key-file", `${folder}/${name}.key`];
  const door = await Door.start(name, ...options, ...identity);
  const own = options.includes("--plaintext") ? ["--plaintext"] : identity;
  const servers = {};
  try {
    for (const id of names) servers[id] = await door.serve(model, id, ...own);
    await use(door, servers, (id, ...more) => door.serve(model, id, ...own, ...more));
  } finally {
    await Promise.all([door, ...Object.values(servers)].map((each) => each.stop("SIGKILL")));
  }
}

for (const identity of [["--plaintext"], []]) {
  test(`clients are served by both servers, and a budget is exact, ${identity.length ? "in plaintext" : "with TLS"}`, async () => {
    const name = `budget${identity.length}`;
    const options = [...identity, "--ledger", `${folder}/${name}.ledger`, "--budget", "total=4"];
    await fleet(name, ["one", "two"], options, async (door, servers) => {
      const trust = door.pin ? { pin: door.pin } : {};
      const met = new Set();
      for (let count = 0; count < 4; count += 1) {
        const { classes, report } = await withClient(door.url, { ...trust, keepKeys: false }, (client) => client.predict(one));
        assert.deepEqual(classes, expected);
        assert.equal(report.door.rounds, 2);
        assert.ok(report.door.bytes.client_to_server > 0 && report.door.bytes.server_to_client > 0);
        met.add(report.door.server);
      }
      assert.deepEqual([...met].sort(), [servers.one.websocket, servers.two.websocket].sort());
      await withClient(door.url, trust, (client) => fails(client.predict(one), "refused", /budget/));
      await door.until(({ tickets }) => tickets.redeemed === 4 && tickets.out === 0 && tickets.issued === 4);
      const { rows } = tacit("budget", "show", "--ledger", `${folder}/${name}.ledger`);
      assert.deepEqual(rows.map(({ used }) => used), [4]);
    });
  });
}

test("a client comes back to the server that keeps its base OTs, and does without them elsewhere", async () => {
  await fleet("kept", ["one", "two", "three"], ["--plaintext"], async (door, servers) => {
    await withClient(door.url, { retryFor: 20 }, async (client) => {
      const first = (await client.predict(one)).report;
      for (let count = 0; count < 2; count += 1) {
        await new Promise((resolve) => setTimeout(resolve, 300));
        const { report } = await client.predict(one);
        assert.deepEqual([report.resumed, report.door.server], [true, first.door.server]);
      }
      const keeper = Object.values(servers).find(({ websocket }) => websocket === first.door.server);
      await keeper.stop("SIGKILL");
      const { report, classes } = await client.predict(one);
      assert.deepEqual(classes, expected);
      assert.notEqual(report.door.server, first.door.server);
      assert.equal(report.resumed ?? false, false);
    });
  });
});

test("a client waits at the door, and asks it again where a server is gone", async () => {
  await fleet("again", [], ["--plaintext"], async (door, servers, serve) => {
    servers.one = await serve("one", "--sessions", "1");
    servers.one.process.kill("SIGSTOP");
    await withClient(door.url, { retryFor: 30, connectSeconds: 2, timeoutSeconds: 20 }, async (client) => {
      const seen = [];
      const answer = client.predict(one, { onProgress: (news) => seen.push(news.phase) });
      await door.until(({ tickets, waiting }) => tickets.issued > 0 || waiting > 0);
      servers.one.process.kill("SIGKILL");
      servers.two = await serve("two");
      const { report, classes } = await answer;
      assert.deepEqual(classes, expected);
      assert.equal(report.door.server, servers.two.websocket);
      assert.ok(seen.includes("retrying") || seen.includes("waiting"), String(seen));
    });
    await servers.two.stop("SIGKILL");
    await door.until(({ servers: all }) => all.every(({ state }) => state === "gone"));
    await door.stop("SIGKILL");
    await withClient(door.url, { retryFor: 1 }, (client) => fails(client.predict(one), "transport", /ECONNREFUSED/));
  });
});

test("a ticket that is over is asked for again", async () => {
  await fleet("over", ["one"], ["--plaintext", "--ticket", "1"], async (door, servers) => {
    for (const retryFor of [0, 20]) {
      const { tickets: before } = await door.until(({ servers: all }) => all.every(({ silent }) => !silent));
      await withClient(door.url, { retryFor, keepKeys: false }, async (client) => {
        servers.one.process.kill("SIGSTOP");
        const answer = client.predict(one);
        const checked = retryFor ? answer : fails(answer, "busy", /ask the door/);
        await door.until(({ tickets }) => tickets.issued > before.issued);
        await new Promise((resolve) => setTimeout(resolve, 2500));
        servers.one.process.kill("SIGCONT");
        await checked;
        if (retryFor) assert.deepEqual((await answer).classes, expected);
        else await assert.rejects(answer, ({ retryAfter }) => retryAfter === 1);
      });
    }
  });
});

/** What a program gets whose authorities are those of `folder`: certificates are checked as a browser checks them. */
function trusting(url) {
  const program = `
import { readFileSync } from "node:fs";
import { Tacit } from "tacit-client";
const [url, shape, file] = process.argv.slice(1);
const bytes = readFileSync(file);
const data = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const client = await Tacit.connect(url);
const told = ({ kind, message }) => ({ kind, message });
const done = ({ classes, report }) => ({ classes, server: report.door.server });
console.log(JSON.stringify(await client.predict({ data, shape: JSON.parse(shape) }).then(done, told)));
client.close();
`;
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: path.join(folder, "ca.pem") };
  const words = ["--input-type=module", "-e", program, url, JSON.stringify(one.shape), path.join(folder, "digits.f32")];
  return JSON.parse(execFileSync(process.execPath, words, { cwd: path.join(ROOT, "web"), env, encoding: "utf8" }));
}

test("certificates are checked by the names that tickets carry", async () => {
  const openssl = (...words) => execFileSync("openssl", words, { cwd: folder, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=tests");
  const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"];
  openssl("req", "-x509", ...key, ...signed, "-keyout", "fleet.key", "-out", "fleet.pem", "-subj", "/CN=fleet");
  const identity = ["--certificate", `${folder}/fleet.pem`, "--key", `${folder}/fleet.key`];
  const door = await Door.start("names", ...identity);
  const servers = [await door.serve(model, "named", ...identity, "--advertise-websocket", "localhost:0")];
  try {
    const url = door.url.replace("127.0.0.1", "localhost");
    const { classes, server } = trusting(url);
    assert.deepEqual([classes, server], [expected, servers[0].websocket.replace("127.0.0.1", "localhost")]);
    await servers[0].stop("SIGKILL");
    servers.push(await door.serve(model, "bare", ...identity));
    const { kind, message } = trusting(url);
    assert.equal(kind, "transport");
    assert.match(message, /127\.0\.0\.1.*(altnames|certificate)/i);
  } finally {
    await Promise.all([door, ...servers].map((each) => each.stop("SIGKILL")));
  }
});

test("refusals of a door name the guilty side", async () => {
  await fleet("refusals", ["one"], ["--plaintext", "--queue", "0"], async (door) => {
    await withClient(door.url, { model: "other" }, (client) => fails(client.predict(one), "refused", /no such model/));
    await withClient(door.url, { token: "12" }, (client) => fails(client.predict(one), "misuse", /64 hex/));
  });
  await fleet("none", [], ["--plaintext", "--queue", "0"], (door) =>
    withClient(door.url, {}, async (client) => {
      await fails(client.predict(one), "busy", /full/);
      await assert.rejects(client.predict(one), ({ retryAfter }) => retryAfter >= 1);
    }),
  );
});

test("a door that passes all clients on passes this one on, with TLS that ends at the server", async () => {
  await fleet("relay", ["one"], ["--relay", "always"], async (door) => {
    await withClient(door.url, { pin: door.pin }, async (client) => {
      for (let count = 0; count < 2; count += 1) {
        const { classes, report } = await client.predict(one);
        assert.deepEqual(classes, expected);
        assert.equal(report.door, undefined);
        assert.equal(report.resumed ?? false, count === 1);
      }
    });
  });
});
