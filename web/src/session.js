// A session that stays open between inputs.

import { misuse, TacitError } from "./errors.js";
import { arePictures, inputsOf } from "./pictures.js";
import { prediction } from "./prediction.js";

/** Most inputs of a session. */
const MOST_INPUTS = 1_000_000;

/** Refuses a number of inputs that no session has. */
export function checked(inputs) {
  if (!Number.isInteger(inputs) || inputs < 1 || inputs > MOST_INPUTS) {
    throw misuse(`a session has 1 to ${MOST_INPUTS} inputs, not ${inputs}`);
  }
  return inputs;
}

/**
 * An open session. `ask` posts a message to the worker and gives its answer, one after another; `ended` is called once, when the
 * session is over; `report` is that of its beginning.
 */
export class Session {
  #ask;
  #connection;
  #ended;
  #options;
  #toInput;
  #last = Promise.resolve();
  #over = null;
  #finished = false;
  #report;
  /** Prepared runs that wait for their inputs. */
  ready = 0;

  constructor({ ask, connection, ended, report, options, toInput }) {
    [this.#ask, this.#connection, this.#ended, this.#report] = [ask, connection, ended, report];
    [this.#options, this.#toInput] = [options, toInput];
  }

  /** Runs the next input, or up to a batch of the server's, after those before it and what is being prepared. */
  predict(given, { preprocessing = this.#options.preprocessing, ...watching } = {}) {
    const pictures = arePictures(given);
    const ready = pictures ? inputsOf(given, preprocessing).then(this.#toInput) : new Promise((resolve) => resolve(this.#toInput(given)));
    ready.catch(() => {});
    return this.#then(async () => {
      const next = await ready;
      if (this.#over) throw this.#over;
      this.#connection.watch(watching);
      const { answer } = await this.#ask({ next });
      // The worker says how many are left as soon as it prepares again.
      this.ready = Math.max(0, this.ready - 1);
      const result = prediction(answer);
      this.#report = result.report;
      return result;
    });
  }

  /** The report up to the last result, or of everything once finished. */
  get report() {
    return this.#report;
  }

  /** Says goodbye, once what runs and what is being prepared is complete, and gives the report. */
  finish() {
    return this.#then(async () => {
      if (this.#finished) return this.#report;
      if (this.#over) throw this.#over;
      this.#report = JSON.parse((await this.#ask({ finish: true })).finished);
      this.#finished = true;
      this.end(misuse("the session is finished"));
      return this.#report;
    });
  }

  /** Breaks off at once, unless the session is over. */
  close() {
    this.end(misuse("the session was given up"));
  }

  /** Ends with an error that further inputs get. */
  end(error) {
    if (this.#over) return;
    [this.#over, this.ready] = [error, 0];
    this.#connection.close();
    this.#ended(error);
  }

  #then(run) {
    const result = this.#last.then(run).catch((error) => {
      // An input that does not fit costs nothing; anything else is the end of the session.
      if (error instanceof TacitError && error.kind === "misuse") throw error;
      this.end(error);
      throw this.#over;
    });
    this.#last = result.catch(() => {});
    return result;
  }
}
