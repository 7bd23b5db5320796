// The client in Node at a fleet on Ray of two servers, as `tacit fleet up` starts it; skipped where `make test-fleet` has installed no Ray.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { Tacit, TacitError } from "tacit-client";

import { compiled, digits, folder, Process, ROOT, tacit } from "./serving.js";

const RAY = path.join(ROOT, "build", "venv-ray", "bin", "python");
const skip = existsSync(RAY) ? false : `there is no ${RAY}: \`make test-fleet\` makes it`;

test("a fleet of two servers answers for its budget and no more", { skip }, async () => {
  const model = compiled("exact");
  const one = digits(1);
  const file = path.join(folder, "fleet.toml");
  writeFileSync(
    file,
    `listen = "127.0.0.1:0"
websocket = "127.0.0.1:0"
host = "127.0.0.1"
ledger = "ray.ledger"
budget = "total=4"
drain = 5
[ray]
cpus = 4
[[model]]
file = "${model}"
name = "digits"
min = 2
sessions = 4
`,
  );
  const fleet = new Process(RAY);
  let line = await fleet.begin("fleet", "up", file);
  try {
    while (!line.ready) line = await fleet.next();
    const { door, servers } = line;
    const client = await Tacit.connect(`wss://${door.websocket}`, { pin: door.pin, keepKeys: false, retryFor: 20 });
    const met = new Set();
    const { output } = tacit("simulate", model, one.file);
    for (let count = 0; count < 4; count += 1) {
      const { classes, report } = await client.predict(one);
      assert.deepEqual(classes, output);
      met.add(report.door.server);
    }
    assert.deepEqual([...met].sort(), servers.map(({ websocket }) => websocket).sort());
    await assert.rejects(client.predict(one), (error) => error instanceof TacitError && error.kind === "refused" && /budget/.test(error.message));
    client.close();
    const { rows } = tacit("budget", "show", "--ledger", path.join(folder, "ray.ledger"));
    assert.deepEqual(rows.map(({ used }) => used), [4]);
  } finally {
    await fleet.stop();
  }
});
