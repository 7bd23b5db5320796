// A ring of bytes in shared memory: one thread writes, another reads and waits.
//
// The writer owns the WebSocket and must never wait; the reader runs the protocol and may. Positions count all bytes, modulo 2^32.

const WRITTEN = 0;
const READ = 1;
/** Changes whenever there is something new for the reader. */
const SIGNAL = 2;
const STATE = 3;
/** Set by a writer that has no room left. */
const STARVED = 4;
const REASON = 5;
const WORDS = 8;
/** Most bytes of the reason for which a connection was lost. */
const MOST_REASON = 512;
const HEADER = 4 * WORDS + MOST_REASON;

export const ENDED = 0;
export const LOST = -1;
export const LATE = -2;

/** A ring over shared memory, which either thread makes of the same buffer. */
export class Ring {
  /** @param {SharedArrayBuffer} buffer */
  constructor(buffer) {
    this.buffer = buffer;
    this.words = new Int32Array(buffer, 0, WORDS);
    this.text = new Uint8Array(buffer, 4 * WORDS, MOST_REASON);
    this.bytes = new Uint8Array(buffer, HEADER);
  }

  /** An empty ring with room for `size` bytes, a power of two. */
  static ofSize(size) {
    return new Ring(new SharedArrayBuffer(HEADER + size));
  }

  /** An empty ring as large as this one. */
  another() {
    return Ring.ofSize(this.bytes.length);
  }

  /** Bytes that can be read now. */
  filled() {
    return (Atomics.load(this.words, WRITTEN) - Atomics.load(this.words, READ)) >>> 0;
  }

  /** Writes as many of the bytes as there is room for, and returns how many. */
  write(bytes) {
    let count = Math.min(bytes.length, this.bytes.length - this.filled());
    if (count < bytes.length) {
      // The reader may have made room before it could see this.
      Atomics.store(this.words, STARVED, 1);
      count = Math.min(bytes.length, this.bytes.length - this.filled());
    }
    const start = (Atomics.load(this.words, WRITTEN) >>> 0) % this.bytes.length;
    const first = Math.min(count, this.bytes.length - start);
    this.bytes.set(bytes.subarray(0, first), start);
    this.bytes.set(bytes.subarray(first, count), 0);
    Atomics.add(this.words, WRITTEN, count);
    this.signal();
    return count;
  }

  /** Says that nothing follows what was written. */
  end() {
    this.finish(1);
  }

  /** Says that the connection was lost, and why. */
  fail(reason) {
    const text = new TextEncoder().encode(reason).subarray(0, MOST_REASON);
    if (Atomics.load(this.words, STATE) === 0) {
      this.text.set(text);
      Atomics.store(this.words, REASON, text.length);
    }
    this.finish(2);
  }

  finish(state) {
    Atomics.compareExchange(this.words, STATE, 0, state);
    this.signal();
  }

  signal() {
    Atomics.add(this.words, SIGNAL, 1);
    Atomics.notify(this.words, SIGNAL);
  }

  /**
   * Reads at least one byte into `out`, waiting up to so many milliseconds; returns how many, or `ENDED`, `LOST` or `LATE`. Of bytes that
   * came before the end none is lost.
   */
  read(out, milliseconds) {
    const until = performance.now() + milliseconds;
    for (;;) {
      const signal = Atomics.load(this.words, SIGNAL);
      const state = Atomics.load(this.words, STATE);
      const count = Math.min(out.length, this.filled());
      if (count > 0) {
        const start = (Atomics.load(this.words, READ) >>> 0) % this.bytes.length;
        const first = Math.min(count, this.bytes.length - start);
        out.set(this.bytes.subarray(start, start + first));
        out.set(this.bytes.subarray(0, count - first), first);
        Atomics.add(this.words, READ, count);
        return count;
      }
      if (state !== 0) return state === 1 ? ENDED : LOST;
      const left = until - performance.now();
      if (left <= 0) return LATE;
      Atomics.wait(this.words, SIGNAL, signal, left);
    }
  }

  /** Whether there is something to read, or an end. */
  isReady() {
    return this.filled() > 0 || Atomics.load(this.words, STATE) !== 0;
  }

  /** Whether the writer waits for room; asked once by the reader after it has read. */
  wasStarved() {
    return Atomics.exchange(this.words, STARVED, 0) === 1;
  }

  /** Why the connection was lost. */
  reason() {
    const length = Atomics.load(this.words, REASON);
    return new TextDecoder().decode(this.text.slice(0, length));
  }
}
