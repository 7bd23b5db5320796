// A connection: a WebSocket, what waits to be sent until it is open, and the ring into which its bytes go.

/** The end of a connection in the thread that owns WebSockets. */
export class Line {
  #platform;
  #ring;
  #received;
  #socket = null;
  #opened = false;
  #over = false;
  #unsent = [];
  #arrived = [];

  /** Bytes go into `ring`; `received` gets them, too. */
  constructor(platform, ring, received) {
    [this.#platform, this.#ring, this.#received] = [platform, ring, received];
  }

  /** Connects, and calls `ready` when the WebSocket is open, or `failed` with the reason, and whether it may pass, when it does not open. */
  open(url, options, ready, failed) {
    this.#socket = this.#platform.openSocket(url, options, {
      opened: () => {
        this.#opened = true;
        for (const bytes of this.#unsent.splice(0)) this.#socket.send(bytes);
        ready();
      },
      bytes: (bytes) => {
        this.#arrived.push(bytes);
        this.pour();
        this.#received(bytes);
      },
      ended: (reason, lost = true) => {
        this.#over = true;
        if (reason === null) this.pour();
        else if (this.#opened) this.#ring.fail(reason);
        else failed(reason, lost);
      },
    });
  }

  send(bytes) {
    if (this.#opened) this.#socket.send(bytes);
    else this.#unsent.push(bytes);
  }

  /** Moves what has come into the ring, as far as there is room. */
  pour() {
    while (this.#arrived.length > 0) {
      const bytes = this.#arrived[0];
      const written = this.#ring.write(bytes);
      if (written < bytes.length) {
        this.#arrived[0] = bytes.subarray(written);
        return;
      }
      this.#arrived.shift();
    }
    if (this.#over) this.#ring.end();
  }

  close() {
    this.#socket?.close();
  }
}
