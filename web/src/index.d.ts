/** Options of a client, as those of `tacit predict`. */
export interface Options {
  /** In Node: the server's key, as `tacit serve` prints it. A browser checks certificates and takes no pin. */
  pin?: string;
  /** The model's name, where the server has several. */
  model?: string;
  /** What says who the client is, to servers that ask: 64 hexadecimal digits. */
  token?: string;
  /** Agree to a suite that leaks more than the result. */
  acceptLeakage?: boolean;
  /** Leave something with the server by which the next session begins sooner; true unless given. */
  keepKeys?: boolean;
  /** Refuse another plan than that of this digest, 64 hexadecimal digits. */
  planDigest?: string;
  /** Refuse another public graph, whatever the link. */
  graphDigest?: string;
  /** Refuse a server that does not show this commitment to its model. */
  modelCommitment?: string;
  /** How pictures become inputs of the model. */
  preprocessing?: Preprocessing | Preset;
  /** Seconds until the WebSocket is open, without a byte of the server, and of a whole session. */
  connectSeconds?: number;
  timeoutSeconds?: number;
  sessionSeconds?: number;
  /** Seconds for which a session is tried again, as a whole, when the server is full, about to stop or gone; 0 unless given. */
  retryFor?: number;
}

/** How pixels become inputs: the fields of `tacit compile --preprocess FILE`, or a preset of Tacit's. */
export interface Preprocessing {
  resize?: number | null;
  crop?: number | null;
  channel_order?: "RGB" | "BGR" | "L";
  scale?: number;
  mean?: number[];
  std?: number[];
  resample?: "bilinear" | "bicubic";
}
export type Preset = "imagenet" | "mobilenet" | "caffe-squeezenet" | "cifar10" | "mnist" | "unit" | "raw";

/** A picture; in Node RGBA pixels alone. */
export type Picture =
  | { data: Uint8ClampedArray; width: number; height: number }
  | Blob
  | ImageBitmap
  | HTMLCanvasElement
  | OffscreenCanvas
  | HTMLImageElement
  | HTMLVideoElement;

/**
 * An input in row-major order, in the model's units (samples of sound are a Float32Array); or several with a leading axis; or
 * pictures, which go through the model's preprocessing.
 */
export type Input = Float32Array | { data: Float32Array; shape: number[] } | NestedNumbers | Picture | Picture[];
export type NestedNumbers = number[] | NestedNumbers[];

/** How far a session is. Bytes are those inside the frames of the WebSocket. */
export interface Progress {
  phase: "waiting" | "running" | "done" | "retrying";
  sent: number;
  received: number;
  /** Sessions before this one, of a server that is busy. */
  waiting: number;
  /** Inputs whose results are here, and all of them, once there is one. */
  done: number;
  inputs: number;
  /** What runs now: a layer by its place in the plan, null for what is for no layer alone. */
  step: { phase: "setup" | "offline" | "online"; layer: number | null } | null;
}

/** What a prediction may be told, and what a page may be told while it runs. */
export interface Watching {
  onProgress?: (progress: Progress) => void;
  /** How the pictures of this prediction become inputs, in the place of the client's own. */
  preprocessing?: Preprocessing | Preset;
  /** Gets the bytes that leave and arrive, inside the frames of the WebSocket, as they do; they are not to be changed. */
  onBytes?: (direction: "sent" | "received", bytes: Uint8Array) => void;
}

/** What a session gave. */
export interface Prediction {
  /** The class of each input. */
  classes: number[];
  /** Real outputs of each input; null where the server reveals classes alone. */
  logits: Float64Array[] | null;
  /** The integers that the session gave, one input after another. */
  outputs: BigInt64Array;
  /** Bytes, rounds and seconds, and the plan: the keys of `tacit predict --json` that are the core's. */
  report: Record<string, any>;
}

/** The guilty side of an error. */
export type Kind = "misuse" | "peer" | "busy" | "refused" | "transport" | "unsupported" | "internal";

export class TacitError extends Error {
  readonly kind: Kind;
  /** Seconds after which it is worth trying again, where `kind` is `busy`. */
  readonly retryAfter?: number;
  /** Whether a connection was lost in a way that may pass, such as a server that is gone. */
  readonly lost: boolean;
  readonly node?: string;
}

/** A client of one server, or of the door of a fleet, which it follows to the server that the door names. */
export class Tacit {
  /**
   * Starts a worker for sessions with the server at `url`: wss://HOST:PORT, or ws:// on this machine. It talks to nobody yet: each
   * prediction is a session over a connection of its own.
   */
  static connect(url: string, options?: Options): Promise<Tacit>;
  /** Runs a session, after those that were asked for before. Refused while a session is open. */
  predict(input: Input, options?: Watching): Promise<Prediction>;
  /**
   * Opens a session of at most `inputs` inputs (1 to 1,000,000) that need not exist yet; batches, where the server takes them. If the
   * server runs with `--offline`, the session prepares runs whenever it waits for an input. One is open at a time.
   */
  session(inputs: number, options?: Watching): Promise<Session>;
  /** Ends the worker, and a session that runs. */
  close(): void;
}

/**
 * An open session: one input, or up to a batch of the server's, at a time. A pause between inputs must be shorter than the server's
 * `--timeout`, and all of them fit into `sessionSeconds`. After an error other than `misuse` the session is over: further inputs get
 * that error.
 */
export interface Session {
  /** Runs an input, after those before it and what is being prepared. The report is that of the session so far. */
  predict(input: Input, options?: Watching): Promise<Prediction>;
  /** Prepared runs that wait for their inputs: 0 to the server's `--offline`. */
  readonly ready: number;
  /** The report up to the last result, or of everything once finished; pauses take no time in it. */
  readonly report: Record<string, any>;
  /** Says goodbye, once the run that is being prepared is complete, with or without inputs left, and gives the report. */
  finish(): Promise<Record<string, any>>;
  /** Breaks off at once, unless the session is over. */
  close(): void;
}

/** The input that a picture becomes, as `predict` sends it. */
export function inputOf(pixels: { data: Uint8ClampedArray; width: number; height: number }, preprocessing: Preprocessing | Preset): { data: Float32Array; shape: number[] };

/** How a model reads text: the file X.text that `tacit compile` writes for clients. */
export class Text {
  /** Reads the bytes of the file; refuses tokenizers that are not of BERT's kind. */
  constructor(bytes: Uint8Array);
  readonly sequence: number;
  readonly pooling: "mean" | "cls" | "hidden" | "classes" | "tokens" | "spans";
  readonly labels: string[];
  /** The input of texts, how many tokens each has, and how many of them count. A tab parts two texts that are read together. */
  inputs(texts: string[]): { data: Float32Array; shape: number[]; lengths: number[]; kept: number[] };
  /** Embeddings of real outputs, where `pooling` is mean or cls; else null. */
  embeddings(logits: ArrayLike<number>[], kept: number[]): number[][] | null;
}

/** The cosine of the angle between two vectors. */
export function cosine(first: ArrayLike<number>, second: ArrayLike<number>): number;
