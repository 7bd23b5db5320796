// The door of a fleet and its servers, in processes of their own.

import path from "node:path";

import { folder, Process } from "./serving.js";

const ANY = "127.0.0.1:0";

/** A `tacit fleet door` with a port for WebSockets. */
export class Door extends Process {
  static async start(name, ...options) {
    const door = new Door();
    door.files = ["--fleet-secret", path.join(folder, `${name}.secret`)];
    const words = ["fleet", "door", "--listen", ANY, "--control", ANY, "--websocket", ANY, "--metrics", ANY];
    const { control, websocket, metrics, pin } = await door.begin(...words, "--secret", door.files[1], ...options);
    Object.assign(door, { control, metrics, pin, url: `${pin ? "wss" : "ws"}://${websocket}` });
    return door;
  }

  /** A server of the fleet, once the door knows it. */
  async serve(model, name, ...options) {
    const server = new Process();
    const own = ["--listen", ANY, "--websocket", ANY, "--fleet", this.control, "--server-id", name];
    const { websocket } = await server.begin("serve", model, ...own, ...this.files, ...options);
    server.websocket = websocket;
    await this.until(({ servers }) => servers.some(({ id, state }) => id === name && state === "ready"));
    return server;
  }

  async state() {
    return (await fetch(`http://${this.metrics}/fleet`)).json();
  }

  /** The state, once it is so. */
  async until(holds) {
    for (let tries = 0; tries < 200; tries += 1) {
      const state = await this.state();
      if (holds(state)) return state;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the fleet never came to be so: ${JSON.stringify(await this.state())}`);
  }
}
