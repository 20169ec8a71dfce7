import { hostname } from "node:os";
import type { ConsumedEvent } from "../event/cloud-event.ts";
import type { Backoff } from "../lib/backoff.ts";
import { type ConsumerProblem, contained, createProblemWarnings } from "./problems.ts";

/**
 * Options of `createConsumer`. Times are in milliseconds.
 *
 * @example
 * ```ts
 * const options: ConsumerOptions = {
 *   redis: "redis://127.0.0.1:6379",
 *   subscription: "sub_…",
 *   concurrency: 4,
 *   retry: { initialMs: 500, maxMs: 60_000 },
 *   onProblem: (problem) => console.error(problem),
 * };
 * ```
 */
export interface ConsumerOptions {
  /** Address of Redis: `redis://…`, `rediss://…` or `unix://…`. Separate the nodes of a Cluster with commas. */
  readonly redis: string;
  /** Id of the subscription to read. Topics that are added to the subscription later are read too. */
  readonly subscription: string;
  /** Returns true for topics that this consumer reads. Other consumers must read the rest. Defaults to all topics. */
  readonly only?: (topic: string) => boolean;
  /**
   * Returns true for events that your handler gets. Other events are acknowledged without a call of your handler, and count towards the lag
   * like all events. If the callback throws, the event is delivered again later. Defaults to all events.
   */
  readonly when?: (event: ConsumedEvent) => boolean;
  /** Maximum number of handlers that run at the same time. Integer from 1 to 10,000, default 16. */
  readonly concurrency?: number;
  /**
   * Which events to handle in order, one at a time. `true` means all events of a topic. `"key"` means the events of a topic with the
   * same `partitionkey`. Up to `concurrency` keys are handled at the same time. An event without a key waits for no other event.
   *
   * A failing event blocks its topic or key until it succeeds or becomes a dead letter. Only one consumer reads a topic at a time.
   * Defaults to false.
   */
  readonly ordered?: boolean | "key";
  /**
   * Maximum number of attempts before an event becomes a dead letter. Crashes count as attempts. Integer from 1 to 1,000,000,
   * default 10.
   */
  readonly maxAttempts?: number;
  /** Wait between attempts. By default it doubles from 1 s to 5 min, and half of each wait is random. */
  readonly retry?: Partial<Backoff>;
  /**
   * Time in ms after which other consumers take over the events of a silent consumer. Integer from 1,000 to 86,400,000, default
   * 30,000.
   */
  readonly deadAfterMs?: number;
  /** Maximum time in ms to wait for running handlers when the consumer stops. Integer from 0 to 86,400,000, default 30,000. */
  readonly stopTimeoutMs?: number;
  /** Maximum number of dead letters per topic. The oldest ones above it are deleted. Integer from 1 to 1,000,000, default 10,000. */
  readonly maxDeadLetters?: number;
  /**
   * Called if Redis is unavailable, an event fails, becomes a dead letter, or was trimmed unhandled. By default, the consumer emits
   * a process warning, at most one of each kind in ten seconds.
   *
   * If the callback throws, the consumer emits a process warning with the code `INLET_ON_PROBLEM` and continues.
   */
  readonly onProblem?: (problem: ConsumerProblem) => void;
}

export interface ConsumerSettings extends Required<Omit<ConsumerOptions, "retry">> {
  readonly retry: Backoff;
  /** Name of this reader in the consumer group. Each reader has a different name. */
  readonly name: string;
}

export type Ordering = ConsumerSettings["ordered"];

const RETRY: Backoff = { initialMs: 1_000, maxMs: 300_000, factor: 2, jitter: 0.5 };
/** Minimum, default and maximum of each numeric option. */
const NUMBERS = {
  concurrency: [1, 16, 10_000],
  maxAttempts: [1, 10, 1_000_000],
  deadAfterMs: [1_000, 30_000, 86_400_000],
  stopTimeoutMs: [0, 30_000, 86_400_000],
  maxDeadLetters: [1, 10_000, 1_000_000],
} as const;
const KNOWN = { ...NUMBERS, redis: 0, subscription: 0, only: 0, when: 0, ordered: 0, retry: 0, onProblem: 0 };

/**
 * Validates options and fills in defaults.
 *
 * @throws TypeError that names the invalid option, or all unknown options
 */
export function readOptions(options: ConsumerOptions): ConsumerSettings {
  const unknown = [
    ...namesBeyond(KNOWN satisfies Record<keyof ConsumerOptions, unknown>, options),
    ...namesBeyond(RETRY, options.retry ?? {}).map((name) => `retry.${name}`),
  ];
  if (unknown.length > 0) throw new TypeError(`unknown options: ${unknown.join(", ")}`);
  const { redis, subscription } = options;
  if (typeof redis !== "string" || redis === "")
    throw new TypeError("redis must be the address of a Redis server");
  if (typeof subscription !== "string" || subscription === "")
    throw new TypeError("subscription must be the id of a subscription");
  const { when = () => true, ordered = false } = options;
  if (typeof ordered !== "boolean" && ordered !== "key")
    throw new TypeError('ordered must be true, false or "key"');
  if (typeof when !== "function")
    throw new TypeError("when must be a function; only a subscription with a handler takes a JSON Schema");
  return {
    redis,
    subscription,
    only: options.only ?? (() => true),
    when,
    ordered,
    concurrency: readNumber(options, "concurrency"),
    maxAttempts: readNumber(options, "maxAttempts"),
    deadAfterMs: readNumber(options, "deadAfterMs"),
    stopTimeoutMs: readNumber(options, "stopTimeoutMs"),
    maxDeadLetters: readNumber(options, "maxDeadLetters"),
    retry: { ...RETRY, ...options.retry },
    onProblem: contained(options.onProblem ?? createProblemWarnings()),
    name: `${hostname().slice(0, 64)}-${process.pid}-${crypto.randomUUID().slice(0, 8)}`,
  };
}

const namesBeyond = (known: object, given: object): readonly string[] =>
  Object.keys(given).filter((name) => !Object.hasOwn(known, name));

function readNumber(options: ConsumerOptions, name: keyof typeof NUMBERS): number {
  const [least, usual, most] = NUMBERS[name];
  const value = options[name] ?? usual;
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new TypeError(`${name} must be an integer from ${least} to ${most}`);
}
