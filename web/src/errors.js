/** Any failure of a session; `kind` names the guilty side. */
export class TacitError extends Error {
  /** @param {{kind: string, message: string, again?: number, node?: string}} failure */
  constructor({ kind, message, again, node }) {
    super(message);
    this.name = "TacitError";
    this.kind = kind;
    /** Seconds after which it is worth trying again, of a server that is busy. */
    this.retryAfter = again;
    /** The node of a model that cannot be run. */
    this.node = node;
  }
}

/** An error that is the caller's fault; nothing was sent. */
export function misuse(message) {
  return new TacitError({ kind: "misuse", message });
}
