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
  /** Called when something fails and is retried: Redis is away, an entry fails, or was trimmed before it was read. */
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

const OPTIONS: Readonly<Record<keyof ConsumerOptions, true>> = {
  redis: true,
  subscription: true,
  only: true,
  concurrency: true,
  ordered: true,
  maxAttempts: true,
  retry: true,
  deadAfterMs: true,
  stopTimeoutMs: true,
  maxDeadLetters: true,
  onProblem: true,
};
const RETRY: Backoff = { initialMs: 1_000, maxMs: 300_000, factor: 2, jitter: 0.5 };

/** @throws TypeError that names the option, or all that are unknown. */
export function readOptions(options: ConsumerOptions): ConsumerSettings {
  const unknown = [
    ...namesBeyond(OPTIONS, options),
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

const namesBeyond = (known: object, given: object): readonly string[] =>
  Object.keys(given).filter((name) => !Object.hasOwn(known, name));

function count(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new TypeError(`${name} must be a whole number from ${least} to ${most}`);
}
