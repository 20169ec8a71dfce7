import { BudgetError, UnavailableError } from "../../lib/errors.ts";
import { isNoScript } from "../../lib/lua.ts";
import { FairQueue } from "../../limits/fairness.ts";
import { awaitDurability, type DurabilityWait } from "../connection/durability.ts";
import type { RedisBus } from "../connection/redis.ts";
import type { WriteConnection } from "../connection/write-connection.ts";
import type { WriteRouter } from "../connection/write-router.ts";
import { StaleSourceError } from "../errors.ts";
import { encodeCall, type PublishGroup } from "./publish-call.ts";

/** Maximum number of events per script call, so that no call blocks Redis for long. */
export const MAX_CALL_EVENTS = 500;
export const MAX_CALL_BYTES = 4 * 1024 * 1024;
/**
 * Maximum calls in flight per Cluster slot. Groups that arrive while a call is in flight are batched into the next call. Each call costs
 * Redis one fsync, so larger calls cost less per event.
 *
 * The second call is only sent once `GROUPS_SENT_AHEAD` groups are waiting, because waiting for an even larger batch gains little. With 64
 * instead of 16, a burst waited longer, and neither the gateway nor Redis saved CPU time.
 */
const MAX_CALLS = 2;
const GROUPS_SENT_AHEAD = 16;
/**
 * Maximum number of calls in flight if WAIT or WAITAOF follows each call. More calls gain nothing, because these commands block the
 * connection.
 */
const MAX_WAITING_CALLS = 1;
/** Maximum number of organizations to skip because their next group does not fit into a call. The call is then sent as it is. */
const MAX_SKIPPED = 16;
const MAX_RETRIES = 3;
const QUARANTINE_RETRY_SECONDS = 60;

interface Queued {
  readonly group: PublishGroup;
  readonly delivery: PendingDelivery;
  readonly resolve: (words: string) => void;
  readonly reject: (error: unknown) => void;
}

interface Lane {
  /** Groups of events that wait for a call. Organizations are scheduled round-robin, so that a busy one delays only its own groups. */
  readonly queue: FairQueue<string, Queued>;
  callsInFlight: number;
  isScheduled: boolean;
}

/** Data that all groups of a delivery share, so that they have the same deadline. */
export interface PendingDelivery {
  readonly organizationId: string;
  readonly signal: AbortSignal;
  /** Time by `performance.now()` when the delivery started to wait for Redis. The write timeout counts from this time. */
  readonly sinceMs: number;
}

export interface LanesOptions {
  readonly writes: WriteRouter;
  readonly quarantineLimits: string;
  readonly onCall: ((seconds: number) => void) | undefined;
  /** Maximum size in bytes of a call with several groups. A group that is larger gets its own call. */
  readonly maxCallBytes: number;
}

/**
 * Adds a group to the next call of its Cluster slot, 0 on a single server. `resolve` gets the script's reply to this group: words
 * separated by spaces.
 */
export type SubmitGroup = (
  slot: number,
  group: PublishGroup,
  delivery: PendingDelivery,
  resolve: Queued["resolve"],
  reject: Queued["reject"],
) => void;

/** Combines the groups of one event loop iteration into one script call per Cluster slot. */
export function createLanes(
  { publishScript }: Pick<RedisBus, "publishScript">,
  { writes, quarantineLimits, onCall, maxCallBytes }: LanesOptions,
): SubmitGroup {
  const lanes = new Map<number, Lane>();

  function schedule(slot: number, lane: Lane) {
    if (lane.isScheduled) return;
    lane.isScheduled = true;
    setImmediate(flush, slot, lane);
  }

  function flush(slot: number, lane: Lane) {
    lane.isScheduled = false;
    while (lane.queue.size > 0) {
      let connection: WriteConnection;
      try {
        connection = writes.connectionFor(slot);
      } catch (error) {
        for (const queued of lane.queue.drain()) queued.reject(error);
        break;
      }
      const { wait } = connection;
      const maxCalls =
        wait !== undefined ? MAX_WAITING_CALLS : lane.queue.size < GROUPS_SENT_AHEAD ? 1 : MAX_CALLS;
      if (connection.problem === undefined && lane.callsInFlight >= maxCalls) return;
      const call = takeCall(lane.queue, maxCallBytes);
      if (call.length === 0) continue;
      lane.callsInFlight++;
      void run(connection, call, wait).finally(() => {
        lane.callsInFlight--;
        if (lane.queue.size > 0) schedule(slot, lane);
        else if (lane.callsInFlight === 0) lanes.delete(slot);
      });
    }
    if (lane.callsInFlight === 0) lanes.delete(slot);
  }

  async function run(first: WriteConnection, call: readonly Queued[], wait: DurabilityWait | undefined) {
    try {
      const groups = call.map(({ group }) => group);
      const args = encodeCall(groups, { mustWrite: wait !== undefined, quarantineLimits });
      const sentAt = performance.now();
      const replies = await send(
        first,
        args,
        Math.min(...call.map(({ delivery }) => delivery.sinceMs)),
        wait,
      );
      onCall?.((performance.now() - sentAt) / 1000);
      call.forEach(({ resolve, reject }, i) => {
        const words = replies[i];
        if (words === undefined)
          reject(new UnavailableError("The publish script returned no reply for a delivery."));
        else if (words.charCodeAt(0) === 45 /* - */) reject(parseRejection(words));
        else resolve(words);
      });
    } catch (error) {
      const failure = toUnavailableError(error);
      for (const { reject } of call) reject(failure);
    }
  }

  async function send(
    first: WriteConnection,
    args: (string | Buffer)[],
    sinceMs: number,
    wait: DurabilityWait | undefined,
  ): Promise<readonly string[]> {
    let connection = first;
    let isAsking = false;
    let script: readonly [command: string, text: string] = ["evalsha", publishScript.sha];
    for (let attempt = 0; ; attempt++) {
      try {
        if (isAsking) connection.send("asking", [], sinceMs).catch(() => {});
        const reply = connection.send(script[0], [script[1], ...args], sinceMs);
        const durable = wait && awaitDurability(connection, wait, sinceMs);
        const replies = durable === undefined ? await reply : (await Promise.all([reply, durable]))[0];
        connection.recordWriteResult();
        return replies as readonly string[];
      } catch (error) {
        connection.recordWriteResult(error);
        if (attempt >= MAX_RETRIES) throw error;
        if (isNoScript(error)) {
          script = ["eval", publishScript.text];
          continue;
        }
        connection.check();
        const redirect = await writes.redirect(error);
        if (redirect === undefined) throw error;
        ({ connection, isAsking } = redirect);
      }
    }
  }

  return function submitGroup(slot, group, delivery, resolve, reject) {
    let lane = lanes.get(slot);
    if (lane === undefined) {
      lane = { queue: new FairQueue(), callsInFlight: 0, isScheduled: false };
      lanes.set(slot, lane);
    }
    lane.queue.push(delivery.organizationId, { group, delivery, resolve, reject });
    schedule(slot, lane);
  };
}

/**
 * Takes as many groups as fit into one call, round-robin by organization. Rejects groups whose signal has aborted. A group that does not
 * fit is set aside for a later call, so that large groups of one organization do not cut short the calls of all others.
 */
function takeCall(queue: FairQueue<string, Queued>, maxBytes: number): Queued[] {
  let events = 0;
  let bytes = 0;
  let skipped = 0;
  const call: Queued[] = [];
  for (let queued = queue.peek(); queued !== undefined; queued = queue.peek()) {
    const { group, delivery } = queued;
    const isFull = events + group.events.length > MAX_CALL_EVENTS || bytes + group.bytes > maxBytes;
    if (call.length > 0 && isFull && !delivery.signal.aborted) {
      if (bytes >= maxBytes || ++skipped > MAX_SKIPPED) break;
      queue.setAside();
      continue;
    }
    queue.shift();
    if (delivery.signal.aborted) {
      queued.reject(delivery.signal.reason);
      continue;
    }
    events += group.events.length;
    bytes += group.bytes;
    call.push(queued);
  }
  queue.bringBack();
  return call;
}

/**
 * Converts every error to UnavailableError, because the outcome of the write is unknown. Even errors that only an operator can fix
 * are converted.
 */
function toUnavailableError(error: unknown): UnavailableError {
  if (error instanceof UnavailableError) return error;
  return new UnavailableError(`Redis: ${error instanceof Error ? error.message : error}`, { cause: error });
}

function parseRejection(words: string): Error {
  const space = words.indexOf(" ");
  const code = words.slice(1, space);
  const text = words.slice(space + 1);
  switch (code) {
    case "EPOCH":
      return new StaleSourceError("epoch", text);
    case "CURSOR":
      return new StaleSourceError("cursor", text);
    case "FULL":
      return new BudgetError("quarantine_full", text, { retryAfterSeconds: QUARANTINE_RETRY_SECONDS });
    default:
      return new UnavailableError(`Redis: ${text}`);
  }
}
