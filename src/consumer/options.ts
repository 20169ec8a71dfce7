import { hostname } from "node:os";
import type { Backoff } from "../lib/backoff.ts";

/** How a subscription is read. Times in ms. */
export interface ConsumerOptions {
  /** `redis://…`, `rediss://…`, `unix://…`; a comma list names nodes of a Cluster. */
  readonly redis: string;
  /** The subscription's id: its topics are followed as they come and go. */
  readonly subscription: string;
  /** Reads these topics only; the others are left to other readers. */
  readonly only?: (topic: string) => boolean;
  /** Handlers that run at once; default 16. */
  readonly concurrency?: number;
  /**
   * One entry of a topic at a time, in order, each topic by one of all readers; an entry that fails holds its topic back until
   * it is handled or a dead letter. Default false: as they come, `concurrency` at once.
   */
  readonly ordered?: boolean;
  /** Attempts at an entry, crashes included, before it is a dead letter; default 10. */
  readonly maxAttempts?: number;
  /** Backoff between attempts; default from 1 s, doubled, to 5 minutes, half of it random. */
  readonly retry?: Partial<Backoff>;
  /** A reader that has been silent for so long is dead, and others claim its entries; default 30,000, at least 1,000. */
  readonly deadAfterMs?: number;
  /** How long a stop waits for running handlers; default 30,000. */
  readonly stopTimeoutMs?: number;
  /** Most dead letters of a topic; default 10,000. */
  readonly maxDeadLetters?: number;
  /**
   * Called when something fails and is retried: Redis is away, an entry fails, or was trimmed before it was read. What it throws
   * itself, or rejects with, stops nothing: it is a warning of the process.
   */
  readonly onProblem?: (problem: ConsumerProblem) => void;
}

export type ConsumerProblem =
  | { readonly kind: "redis"; readonly error: unknown }
  | {
      readonly kind: "failed" | "dead";
      readonly topic: string;
      readonly entryId: string;
      readonly attempt: number;
      readonly error: unknown;
    }
  /** Retention trimmed them before they were handled. */
  | { readonly kind: "lost"; readonly topic: string; readonly entryIds: readonly string[] };

/** Options with their defaults. */
export interface ConsumerSettings extends Required<Omit<ConsumerOptions, "retry">> {
  readonly retry: Backoff;
  /** The reader's own, unlike that of any other. */
  readonly name: string;
}

const RETRY: Backoff = { initialMs: 1_000, maxMs: 300_000, factor: 2, jitter: 0.5 };
/** The bounds of each number, and its default. */
const NUMBERS = {
  concurrency: [1, 16, 10_000],
  maxAttempts: [1, 10, 1_000_000],
  deadAfterMs: [1_000, 30_000, 86_400_000],
  stopTimeoutMs: [0, 30_000, 86_400_000],
  maxDeadLetters: [1, 10_000, 1_000_000],
} as const;
const KNOWN = { ...NUMBERS, redis: 0, subscription: 0, only: 0, ordered: 0, retry: 0, onProblem: 0 };

/** @throws TypeError that names the option, or all that are unknown. */
export function readOptions(options: ConsumerOptions): ConsumerSettings {
  const unknown = [
    ...namesBeyond(KNOWN satisfies Record<keyof ConsumerOptions, unknown>, options),
    ...namesBeyond(RETRY, options.retry ?? {}).map((name) => `retry.${name}`),
  ];
  if (unknown.length > 0) throw new TypeError(`unknown options: ${unknown.join(", ")}`);
  const { redis, subscription } = options;
  if (typeof redis !== "string" || redis === "") throw new TypeError("redis must be an address");
  if (typeof subscription !== "string" || subscription === "")
    throw new TypeError("subscription must be an id");
  return {
    redis,
    subscription,
    only: options.only ?? (() => true),
    ordered: options.ordered ?? false,
    concurrency: readNumber(options, "concurrency"),
    maxAttempts: readNumber(options, "maxAttempts"),
    deadAfterMs: readNumber(options, "deadAfterMs"),
    stopTimeoutMs: readNumber(options, "stopTimeoutMs"),
    maxDeadLetters: readNumber(options, "maxDeadLetters"),
    retry: { ...RETRY, ...options.retry },
    onProblem: contained(options.onProblem ?? (() => {})),
    name: `${hostname().slice(0, 64)}-${process.pid}-${crypto.randomUUID().slice(0, 8)}`,
  };
}

/** Reading goes on, and nothing is silent: by default Node writes a warning to standard error. */
const contained = (onProblem: (problem: ConsumerProblem) => unknown) => (problem: ConsumerProblem) => {
  const warn = (thrown: unknown): void => {
    const reason = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    process.emitWarning(`onProblem failed, told of "${problem.kind}": ${reason}`, {
      code: "INLET_ON_PROBLEM",
    });
  };
  try {
    // It may be asynchronous, whatever its type says.
    Promise.resolve(onProblem(problem)).catch(warn);
  } catch (error) {
    warn(error);
  }
};

const namesBeyond = (known: object, given: object): readonly string[] =>
  Object.keys(given).filter((name) => !Object.hasOwn(known, name));

function readNumber(options: ConsumerOptions, name: keyof typeof NUMBERS): number {
  const [least, usual, most] = NUMBERS[name];
  const value = options[name] ?? usual;
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new TypeError(`${name} must be a whole number from ${least} to ${most}`);
}
