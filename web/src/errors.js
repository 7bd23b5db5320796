/** Any failure of a session; `kind` names the guilty side. */
export class TacitError extends Error {
  /** @param {{kind: string, message: string, again?: number, lost?: boolean, node?: string}} failure */
  constructor({ kind, message, again, lost, node }) {
    super(message);
    this.name = "TacitError";
    this.kind = kind;
    /** Seconds after which it is worth trying again, of a server that is busy. */
    this.retryAfter = again;
    /** Whether the connection was lost in a way that may pass. */
    this.lost = lost ?? false;
    /** The node of a model that cannot be run. */
    this.node = node;
  }
}

/** An error that is the caller's fault; nothing was sent. */
export function misuse(message) {
  return new TacitError({ kind: "misuse", message });
}

/** Milliseconds to wait after `error` before another attempt, as `tacit predict --retry-for` waits; null where another ends the same. */
export function pauseAfter(error, attempt) {
  let seconds = null;
  if (error.kind === "busy") seconds = error.retryAfter ?? 1;
  else if (error.kind === "transport" && error.lost) seconds = Math.min(30, 0.5 * 2 ** Math.min(attempt, 16));
  // Clients that failed together do not come back together.
  return seconds === null ? null : 1000 * seconds * (0.75 + Math.random() / 2);
}
