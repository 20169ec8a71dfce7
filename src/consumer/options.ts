import { hostname } from "node:os";
import type { Backoff } from "../lib/backoff.ts";

/** What it takes to read a subscription. Times in ms. */
export interface ConsumerOptions {
  /** `redis://…`, `rediss://…`, `unix://…`; a comma list names nodes of a Cluster. */
  readonly redis: string;
  /** The subscription's id: its topics are followed as they come and go. */
  readonly subscription: string;
  /** Reads only those topics; the entries of all others are left to other readers. */
  readonly only?: (topic: string) => boolean;
  /** Handlers that run at once; default 16. */
  readonly concurrency?: number;
  /**
   * One entry of a topic at a time, in order, by one reader of all that there are; an entry that fails holds its topic back until
   * it is handled or a dead letter. Default false: as they come, `concurrency` at once.
   */
  readonly ordered?: boolean;
  /** Times that an entry is handed to a handler, crashes included, before it is a dead letter; default 10. */
  readonly maxAttempts?: number;
  /** Between attempts; default from 1 s, doubled, to 5 minutes, half of it left to chance. */
  readonly retry?: Partial<Backoff>;
  /** A reader that has been silent for so long is dead: its entries are another's; default 30,000, at least 1,000. */
  readonly deadAfterMs?: number;
  /** What a stop waits for handlers under way; default 30,000. */
  readonly stopTimeoutMs?: number;
  /** Dead letters that a topic keeps; default 10,000. */
  readonly maxDeadLetters?: number;
  /** Told of what goes wrong and is tried again: Redis away, an entry that fails, one that was trimmed before it was read. */
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
  /** Retention took it before it was handled. */
  | { readonly kind: "lost"; readonly topic: string; readonly entryIds: readonly string[] };

/** Options with their defaults. */
export interface ConsumerSettings extends Required<Omit<ConsumerOptions, "retry">> {
  readonly retry: Backoff;
  /** Unlike that of any other reader. */
  readonly name: string;
}

const RETRY: Backoff = { initialMs: 1_000, maxMs: 300_000, factor: 2, jitter: 0.5 };

/** @throws TypeError that names the option. */
export function readOptions(options: ConsumerOptions): ConsumerSettings {
  const { redis, subscription } = options;
  if (typeof redis !== "string" || redis === "") throw new TypeError("redis must be an address");
  if (typeof subscription !== "string" || subscription === "")
    throw new TypeError("subscription must be an id");
  return {
    redis,
    subscription,
    only: options.only ?? (() => true),
    ordered: options.ordered ?? false,
    concurrency: count("concurrency", options.concurrency ?? 16, 1, 10_000),
    maxAttempts: count("maxAttempts", options.maxAttempts ?? 10, 1, 1_000_000),
    deadAfterMs: count("deadAfterMs", options.deadAfterMs ?? 30_000, 1_000, 86_400_000),
    stopTimeoutMs: count("stopTimeoutMs", options.stopTimeoutMs ?? 30_000, 0, 86_400_000),
    maxDeadLetters: count("maxDeadLetters", options.maxDeadLetters ?? 10_000, 1, 1_000_000),
    retry: { ...RETRY, ...options.retry },
    onProblem: options.onProblem ?? (() => {}),
    name: `${hostname().slice(0, 64)}-${process.pid}-${crypto.randomUUID().slice(0, 8)}`,
  };
}

function count(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new TypeError(`${name} must be a whole number from ${least} to ${most}`);
}
