// What the worker does: it runs sessions, one at a time, and waits for bytes in shared memory.

import { begin } from "./link.js";
import { Ring } from "./ring.js";
import { Client } from "./wasm/tacit_web.js";

/** Answers the messages of the thread that owns the WebSocket; `post` sends to it. */
export function working(post) {
  let client = null;
  /** Whether the session that is open is to prepare as soon as there is nothing else to do. */
  let preparing = false;

  const failed = (error) => {
    // What Rust throws is the JSON of an error; anything else is a defect, after which the memory cannot be trusted.
    const known = typeof error === "string";
    const message = `internal error: ${error?.message ?? error}`;
    post({ failed: known ? JSON.parse(error) : { kind: "internal", message }, over: !known });
  };
  const told = (answer) => {
    const { outputs, columns, report } = answer;
    answer.free();
    post({ answer: { outputs, columns, report } });
  };
  const prepare = () => {
    if (!preparing) return;
    try {
      preparing = client.prepare();
      post({ ready: client.ready() });
      if (preparing) setTimeout(prepare);
    } catch (error) {
      // The next input is told of an error of the session; a defect is told now.
      preparing = false;
      if (typeof error !== "string") failed(error);
    }
  };
  /** Prepares run after run, and hears in between what is asked for. */
  const pause = () => {
    post({ ready: client.ready() });
    if (!preparing) setTimeout(prepare);
    preparing = true;
  };
  const answers = {
    options: (options) => {
      client = new Client(JSON.stringify(options));
      post({ ready: 0 });
    },
    predict: ({ values, shape, ring }) => {
      begin(new Ring(ring), post);
      told(client.predict(values, shape));
    },
    open: ({ inputs, ring }) => {
      begin(new Ring(ring), post);
      post({ opened: client.open(inputs) });
      pause();
    },
    next: ({ values, shape }) => {
      told(client.next(values, shape));
      pause();
    },
    finish: () => {
      preparing = false;
      post({ finished: client.finish() });
    },
    abandon: () => {
      preparing = false;
      client.abandon();
    },
  };
  return (message) => {
    try {
      for (const [name, content] of Object.entries(message)) answers[name](content);
    } catch (error) {
      failed(error);
    }
  };
}
