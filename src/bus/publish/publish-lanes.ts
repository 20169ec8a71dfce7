import { UnavailableError } from "../../lib/errors.ts";
import { FairQueue } from "../../lib/fair-queue.ts";
import { isNoScript } from "../../lib/lua.ts";
import { type DurabilityWait, waitFor } from "../connection/durability.ts";
import type { RedisBus } from "../connection/redis.ts";
import { awaitDurability, type WriteConnection } from "../connection/write-connection.ts";
import type { WriteRouter } from "../connection/write-router.ts";
import { StaleSourceError } from "../errors.ts";
import { encodeCall, type PublishGroup } from "./publish-call.ts";

/** The most that one script call holds, so that no call keeps Redis from the others for long. */
export const MAX_CALL_EVENTS = 500;
export const MAX_CALL_BYTES = 4 * 1024 * 1024;
/**
 * While Redis works on a call, what comes gathers for the next one: a call costs Redis its own sync, and an event in a call of
 * 30 five sixths of one in a call of 20. A second call is sent ahead where so many groups have gathered that little is won by waiting.
 */
const MAX_CALLS = 2;
const GROUPS_SENT_AHEAD = 64;
/** A WAIT holds its connection: more calls would only stand in line behind it. */
const MAX_WAITING_CALLS = 1;
/** Organizations that a call is filled up without, as what they wait with is too large for what is left of it. */
const MOST_PASSED = 16;
const REDIRECTS = 3;
const QUARANTINE_RETRY_SECONDS = 60;

interface Queued {
  readonly group: PublishGroup;
  readonly delivery: DeliveryOnItsWay;
  readonly resolve: (words: string) => void;
  readonly reject: (error: unknown) => void;
}

interface Lane {
  /** In turns by organization: one that brings much waits for itself. */
  readonly queue: FairQueue<string, Queued>;
  callsUnderWay: number;
  isScheduled: boolean;
}

/** All groups of a delivery share it: they end together, however many they are. */
export interface DeliveryOnItsWay {
  readonly organizationId: string;
  readonly signal: AbortSignal;
  /** When it came, by `performance.now()`; a write of it fails so and so much later. */
  readonly sinceMs: number;
}

export interface LanesOptions {
  readonly writes: WriteRouter;
  readonly quarantineLimits: string;
  readonly onCall: ((seconds: number) => void) | undefined;
  /** Of one call, where it holds more than one group. */
  readonly maxCallBytes: number;
}

/** Gathers the groups submitted within one turn of the event loop into one call per slot. */
export function createLanes(
  { publishScript, demand }: Pick<RedisBus, "publishScript" | "demand">,
  { writes, quarantineLimits, onCall, maxCallBytes }: LanesOptions,
) {
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
      const wait = connection.facts && waitFor(connection.facts, demand);
      const isWaiting = wait !== undefined && (wait.localFsync || wait.replicas > 0);
      const maxCalls = isWaiting ? MAX_WAITING_CALLS : lane.queue.size < GROUPS_SENT_AHEAD ? 1 : MAX_CALLS;
      if (connection.problem === undefined && lane.callsUnderWay >= maxCalls) return;
      const call = takeCall(lane.queue, maxCallBytes);
      if (call.length === 0) continue;
      lane.callsUnderWay++;
      void run(connection, call, isWaiting ? wait : undefined).finally(() => {
        lane.callsUnderWay--;
        if (lane.queue.size > 0) schedule(slot, lane);
        else if (lane.callsUnderWay === 0) lanes.delete(slot);
      });
    }
    if (lane.callsUnderWay === 0) lanes.delete(slot);
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
        if (words === undefined) reject(new UnavailableError("the script has not answered for a delivery"));
        else if (words.charCodeAt(0) === 45 /* - */) reject(refusalOf(words));
        else resolve(words);
      });
    } catch (error) {
      const refusal = asUnavailable(error);
      for (const { reject } of call) reject(refusal);
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
        connection.noteWrite();
        return replies as readonly string[];
      } catch (error) {
        connection.noteWrite(error);
        if (attempt >= REDIRECTS) throw error;
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

  /** Puts a group of a slot (0 where there are none) into a call; calls back with the words of the script's reply. */
  return (
    slot: number,
    group: PublishGroup,
    delivery: DeliveryOnItsWay,
    resolve: Queued["resolve"],
    reject: Queued["reject"],
  ): void => {
    let lane = lanes.get(slot);
    if (lane === undefined) {
      lane = { queue: new FairQueue(), callsUnderWay: 0, isScheduled: false };
      lanes.set(slot, lane);
    }
    lane.queue.push(delivery.organizationId, { group, delivery, resolve, reject });
    schedule(slot, lane);
  };
}

/**
 * Takes as many groups, in their turns, as fit into one call; groups given up meanwhile are refused and left out. One that does not
 * fit begins the next call: were it the end of this one, large groups of one organization would let one small group of each
 * other pass at a time.
 */
function takeCall(queue: FairQueue<string, Queued>, maxBytes: number): Queued[] {
  let events = 0;
  let bytes = 0;
  let passed = 0;
  const call: Queued[] = [];
  for (let queued = queue.peek(); queued !== undefined; queued = queue.peek()) {
    const { group, delivery } = queued;
    const isFull = events + group.events.length > MAX_CALL_EVENTS || bytes + group.bytes > maxBytes;
    if (call.length > 0 && isFull && !delivery.signal.aborted) {
      if (bytes >= maxBytes || ++passed > MOST_PASSED) break;
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
 * After any error the events are not certain, also after one that only an operator can mend, such as a missing permission.
 */
function asUnavailable(error: unknown): UnavailableError {
  if (error instanceof UnavailableError) return error;
  return new UnavailableError(`Redis: ${error instanceof Error ? error.message : error}`, { cause: error });
}

function refusalOf(words: string): Error {
  const space = words.indexOf(" ");
  const code = words.slice(1, space);
  const text = words.slice(space + 1);
  switch (code) {
    case "EPOCH":
      return new StaleSourceError("epoch", text);
    case "CURSOR":
      return new StaleSourceError("cursor", text);
    case "FULL":
      return new UnavailableError(text, { retryAfterSeconds: QUARANTINE_RETRY_SECONDS });
    default:
      return new UnavailableError(`Redis: ${text}`);
  }
}
