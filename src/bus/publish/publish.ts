import { UnavailableError } from "../../lib/errors.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import { type Budgets, ownBudgets } from "../../limits/budgets.ts";
import type { RedisBus } from "../connection/redis.ts";
import { encodeLimits, QUARANTINE_LIMITS, type QuarantineLimits } from "../quarantine/quarantine-record.ts";
import type { PublishBatch, PublishResult } from "./publish-batch.ts";
import {
  createGroup,
  createPolicyEncoder,
  type PublishGroup,
  parseReply,
  type QuarantineDeps,
  splitWords,
} from "./publish-call.ts";
import { createLanes, MAX_CALL_BYTES, MAX_CALL_EVENTS, type SubmitGroup } from "./publish-lanes.ts";
import { createWriteBySlot, createWriteInOrder } from "./publish-parts.ts";

/**
 * Appends the events of a delivery, each at most once within the dedupe window, and writes its quarantine records. Resolves when all writes
 * are as durable as configured. Settles within five seconds.
 *
 * On a single Redis, a delivery of up to 500 events and 4 MiB is one atomic script call. Larger deliveries are split into several calls, in
 * order. In a Cluster, each slot gets its own calls. The last step deletes the quarantine records in `release` and commits the cursor.
 *
 * `signal` does not cancel a call that was already sent. The buffers of large event values are freed when the promise resolves.
 *
 * @throws UnavailableError when the delivery was rejected or its outcome is unknown; a retry is safe.
 * @throws StaleSourceError when the source no longer owns `position`.
 */
export type Publish = (batch: PublishBatch, options: PublishOptions) => Promise<PublishResult>;

export interface PublishOptions {
  readonly signal: AbortSignal;
  /** Time by `performance.now()` when the delivery started to wait for Redis. All calls of the delivery share this time. Default: now. */
  readonly sinceMs?: number;
}

/** Arguments of `onAppended`, which is called only for events whose policy has `maxBytes`. */
export type Appended = readonly [topic: string, bytes: number, maxBytes: number];

/** Listeners for appended events, which are called in the order of subscription. */
export interface AppendedListeners {
  readonly subscribe: (listener: (...appended: Appended) => void) => void;
  readonly notify: (...appended: Appended) => void;
}

export function createAppendedListeners(): AppendedListeners {
  const listeners: ((...appended: Appended) => void)[] = [];
  return {
    subscribe: (listener) => void listeners.push(listener),
    notify(...appended) {
      for (const listener of listeners) listener(...appended);
    },
  };
}

export interface PublishDeps extends QuarantineDeps {
  readonly redis: RedisBus;
  readonly onAppended?: (...appended: Appended) => void;
  /** Called after each successful script call with the duration of the call in seconds. */
  readonly onCall?: (seconds: number) => void;
  /** Maximum bytes of unfinished deliveries, shared fairly among organizations. Deliveries above it are rejected. Default: 64 MiB. */
  readonly maxBytesInFlight?: number;
  /** Budgets that all processes of this machine share. */
  readonly budgets?: Budgets | undefined;
  readonly quarantineLimits?: QuarantineLimits;
}

/**
 * Minimum size in bytes of large groups, which use a separate connection. Their transfer then does not delay small groups, but
 * their execution in Redis still does.
 */
const LARGE_BYTES = 128 * 1024;

export function createPublish(deps: PublishDeps): Publish {
  const { redis, onAppended, maxBytesInFlight = 64 * 1024 * 1024, budgets = ownBudgets } = deps;
  const limits = encodeLimits(deps.quarantineLimits ?? QUARANTINE_LIMITS);
  const lanes = { quarantineLimits: limits, onCall: deps.onCall };
  const submitSmall = createLanes(redis, { ...lanes, writes: redis.writes, maxCallBytes: MAX_CALL_BYTES });
  const submitLarge = createLanes(redis, { ...lanes, writes: redis.largeWrites, maxCallBytes: LARGE_BYTES });
  // Groups that move a pull source's position always use the connection for small groups, because positions must be stored in order.
  const submit: SubmitGroup = (slot, group, ...rest) =>
    (group.bytes > LARGE_BYTES && group.position === undefined ? submitLarge : submitSmall)(
      slot,
      group,
      ...rest,
    );
  const { isSlotted } = redis.writes;
  const writeParts = isSlotted ? createWriteBySlot(submit) : createWriteInOrder(submit);
  const inFlight = budgets.open("inFlight", { total: maxBytesInFlight });
  const encodePolicy = createPolicyEncoder();

  return (batch, { signal, sinceMs = performance.now() }) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const { organizationId } = batch.channel;
      const delivery = { organizationId, signal, sinceMs };
      const policy = encodePolicy(batch.policy);
      const whole = createGroup(batch, policy, deps);
      const fail = (error: unknown): void => {
        inFlight.giveBack(organizationId, whole.bytes);
        reject(error);
      };
      const done = (words: readonly string[]): void => {
        inFlight.giveBack(organizationId, whole.bytes);
        const result = parseReply(words, batch.events.length);
        reportAppended(batch, result);
        // Free the buffers only on success, because after a failed call the socket may still be sending them.
        for (const { large } of batch.events) if (large !== undefined) freeBuffer(large.bytes);
        resolve(result);
      };
      const write = (): void => {
        if (!isSlotted && fitsOneCall(whole))
          submit(0, whole, delivery, (words) => done(splitWords(words)), fail);
        else writeParts(whole, delivery).then(done, fail);
      };
      const isTaken = inFlight.take(organizationId, whole.bytes);
      if (isTaken === true) write();
      else if (isTaken === false) reject(createFullError());
      else void isTaken.then((isGranted) => (isGranted ? write() : reject(createFullError())));
    });

  function reportAppended({ events, policy: { maxBytes } }: PublishBatch, { receipts }: PublishResult): void {
    if (onAppended === undefined || maxBytes === undefined) return;
    for (let i = 0; i < events.length; i++) {
      const event = events[i];
      if (event !== undefined && receipts[i]?.status === "published") {
        onAppended(event.topic, event.bytes, maxBytes);
      }
    }
  }
}

const createFullError = (): UnavailableError =>
  new UnavailableError("The organization has too many bytes in flight to Redis. Retry later.");

const fitsOneCall = ({ bytes, events }: PublishGroup): boolean =>
  events.length <= MAX_CALL_EVENTS && bytes <= MAX_CALL_BYTES;
