// What the worker does: it runs sessions, one at a time, and waits for bytes in shared memory.

import { begin } from "./link.js";
import { Ring } from "./ring.js";
import { Client } from "./wasm/tacit_web.js";

/** Answers the messages of the thread that owns the WebSocket; `post` sends to it. */
export function working(post) {
  let client = null;
  const failed = (error) => {
    // What Rust throws is the JSON of an error; anything else is a defect, after which the memory cannot be trusted.
    const known = typeof error === "string";
    const message = `internal error: ${error?.message ?? error}`;
    post({ failed: known ? JSON.parse(error) : { kind: "internal", message }, over: !known });
  };
  return ({ options, predict }) => {
    try {
      if (options !== undefined) {
        client = new Client(JSON.stringify(options));
        post({ ready: true });
        return;
      }
      begin(new Ring(predict.ring), post);
      const answer = client.predict(predict.values, predict.shape);
      const { outputs, columns, report } = answer;
      answer.free();
      post({ answer: { outputs, columns, report } });
    } catch (error) {
      failed(error);
    }
  };
}
