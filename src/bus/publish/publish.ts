import type { ChannelIdentity } from "../../event/channel.ts";
import type { ConflictRule } from "../../event/dedupe.ts";
import type { OutgoingEvent, SignedMark } from "../../event/event.ts";
import type { SourcePosition } from "../../event/received.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { createFairBudget } from "../../lib/fair-budget.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import type { NewId } from "../../lib/ids.ts";
import type { RedisBus } from "../connection/redis.ts";
import { computeSlot, cursorKey, quarantineBudgetKey, signedBytesKey } from "../keys.ts";
import {
  encodeLimits,
  encodeQuarantine,
  QUARANTINE_LIMITS,
  type QuarantineLimits,
  type QuarantineWrite,
} from "../quarantine/quarantine-record.ts";
import type { PublishGroup } from "./publish-call.ts";
import { createLanes, MAX_CALL_BYTES, MAX_CALL_EVENTS, type PendingDelivery } from "./publish-lanes.ts";

export interface PublishPolicy {
  readonly dedupeWindowMs: number;
  readonly conflict: ConflictRule["conflict"];
  readonly maxEntries: number;
  /** Maximum bytes per topic. Publishing does not enforce it, but passes it to `onAppended` so that busy topics can be trimmed early. */
  readonly maxBytes?: number;
}

export interface PublishBatch {
  readonly channel: ChannelIdentity;
  readonly events: readonly OutgoingEvent[];
  readonly policy: PublishPolicy;
  /** Items of the same delivery that failed before publishing, to be stored as quarantine records. */
  readonly quarantine?: QuarantineWrite | undefined;
  /**
   * Ids of the quarantine records that these events come from. The records are deleted, unless an event id is already used with
   * other data.
   */
  readonly release?: readonly string[] | undefined;
  /**
   * Signed bytes of the delivery, if the channel uses them to detect replays. They are remembered for the dedupe window. If they arrive
   * again with other event ids or types, the delivery is a replay: no new event is published, and known events are reported as duplicates.
   */
  readonly signed?: SignedMark | undefined;
  /** Position of the pull source after this delivery. It is not stored if an event id is already used with other data. */
  readonly position?: SourcePosition | undefined;
}

export type Receipt =
  | { readonly status: "published" | "duplicate"; readonly entryId: string }
  | { readonly status: "conflict" | "replayed" };

/** Results in the given order: one receipt for each event, and one id for each quarantined item. */
export interface PublishResult {
  readonly receipts: readonly Receipt[];
  readonly quarantineIds: readonly string[];
}

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

export interface PublishDeps {
  readonly redis: RedisBus;
  readonly newQuarantineId: NewId;
  readonly onAppended?: (...appended: Appended) => void;
  /** Called after each successful script call with the duration of the call in seconds. */
  readonly onCall?: (seconds: number) => void;
  /** Maximum bytes of unfinished deliveries, shared fairly among organizations. Deliveries above it are rejected. Default: 64 MiB. */
  readonly maxBytesInFlight?: number;
  readonly quarantineLimits?: QuarantineLimits;
  /** Returns the quarantine limit of an organization in bytes. `undefined` means the default in `quarantineLimits`. */
  readonly getQuarantineLimitBytes?: (organizationId: string) => number | undefined;
}

const NO_WORDS: readonly string[] = [];
/** Words in the script's reply: `!` for a known id with other data, `?` for signed bytes known with other ids or types. */
const CONFLICT = "!";
const REPLAYED = "?";
/**
 * Minimum size in bytes of large groups, which use a separate connection. Their transfer then does not delay small groups, but
 * their execution in Redis still does.
 */
const LARGE_BYTES = 128 * 1024;
const DEFAULT_WINDOW_MS = 86_400_000;
const DEFAULT_SLICING = "r".charCodeAt(0);
const SHORTEST_SLICING = -17;
const LONGEST_SLICING = 5;

export function createPublish(deps: PublishDeps): Publish {
  const { redis, newQuarantineId, onAppended, maxBytesInFlight = 64 * 1024 * 1024 } = deps;
  const limits = encodeLimits(deps.quarantineLimits ?? QUARANTINE_LIMITS);
  const lanes = { quarantineLimits: limits, onCall: deps.onCall };
  const submitSmall = createLanes(redis, { ...lanes, writes: redis.writes, maxCallBytes: MAX_CALL_BYTES });
  const submitLarge = createLanes(redis, { ...lanes, writes: redis.largeWrites, maxCallBytes: LARGE_BYTES });
  // Groups that move a pull source's position always use the connection for small groups, because positions must be stored in order.
  const submit: typeof submitSmall = (slot, group, ...rest) =>
    (group.bytes > LARGE_BYTES && group.position === undefined ? submitLarge : submitSmall)(
      slot,
      group,
      ...rest,
    );
  const { isSlotted } = redis.writes;
  const inFlight = createFairBudget<string>(maxBytesInFlight);
  const encodePolicy = createPolicyEncoder();

  return (batch, { signal, sinceMs = performance.now() }) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const { organizationId } = batch.channel;
      const delivery = { organizationId, signal, sinceMs };
      const policy = encodePolicy(batch.policy);
      const whole = createGroup(
        batch,
        policy,
        newQuarantineId,
        deps.getQuarantineLimitBytes?.(organizationId),
      );
      if (!inFlight.take(organizationId, whole.bytes)) {
        throw new UnavailableError("The organization has too many bytes in flight to Redis. Retry later.");
      }
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
      if (!isSlotted && fitsOneCall(whole))
        submit(0, whole, delivery, (words) => done(splitWords(words)), fail);
      else (isSlotted ? writeBySlot : writeInOrder)(whole, delivery).then(done, fail);
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

  function submitAsync(slot: number, group: PublishGroup, delivery: PendingDelivery): Promise<string> {
    return new Promise((resolve, reject) => submit(slot, group, delivery, resolve, reject));
  }

  /**
   * Writes a delivery to a single Redis in ordered pieces. The last piece deletes the processed quarantine records and moves the
   * stored cursor.
   *
   * The first piece also writes new quarantine records.
   */
  async function writeInOrder(whole: PublishGroup, delivery: PendingDelivery): Promise<readonly string[]> {
    const { policy, events, position, quarantine, release, signed } = whole;
    const pieces = splitEvents(events);
    if (pieces.length <= 1) return splitWords(await submitAsync(0, whole, delivery));
    const checked = position?.cursor && { ...position, cursor: { ...position.cursor, commits: false } };
    const eventWords: string[] = [];
    let quarantineIds = NO_WORDS;
    for (const [i, piece] of pieces.entries()) {
      const isLast = i === pieces.length - 1;
      const isDone = isLast && !hasConflict(eventWords);
      const group: PublishGroup = {
        policy,
        ...piece,
        ...(position && { position: isDone ? position : (checked ?? position) }),
        ...(quarantine && i === 0 && { quarantine }),
        ...(release && isDone && { release }),
        ...(signed && { signed }),
      };
      const words = splitWords(await submitAsync(0, group, delivery));
      for (const word of words.slice(0, piece.events.length)) eventWords.push(word);
      if (i === 0) quarantineIds = words.slice(piece.events.length);
    }
    return [...eventWords, ...quarantineIds];
  }

  /**
   * Writes a delivery to a Cluster, all slots in parallel, after checking for a replay. Deletes the processed quarantine records
   * and moves the stored cursor last.
   */
  async function writeBySlot(whole: PublishGroup, delivery: PendingDelivery): Promise<readonly string[]> {
    const { policy, events, position, quarantine, release, signed } = whole;
    const isReplay =
      signed !== undefined &&
      (await submitAsync(
        computeSlot(signed.memoryKey),
        { policy, events: [], signed, bytes: 0 },
        delivery,
      )) === REPLAYED;
    const eventWords = new Array<string>(events.length).fill("");
    const epochOnly = position && { source: position.source, at: position.at };
    const bySlot = Map.groupBy(events.entries(), ([, { topic }]) => computeSlot(topic));
    const writePart = async ([slot, part]: readonly [number, (readonly [number, OutgoingEvent])[]]) => {
      const places = part.values();
      for (const piece of splitEvents(part.map(([, event]) => event))) {
        const group = { policy, ...piece, isReplay, ...(epochOnly && { position: epochOnly }) };
        for (const word of splitWords(await submitAsync(slot, group, delivery))) {
          eventWords[places.next().value?.[0] ?? 0] = word;
        }
      }
    };
    const emptyGroup = { policy, events: [], bytes: 0 };
    const [quarantineIds] = await Promise.all([
      quarantine
        ? submitAsync(
            computeSlot(quarantine.budgetKey),
            { ...emptyGroup, quarantine, bytes: quarantine.bytes },
            delivery,
          ).then(splitWords)
        : NO_WORDS,
      ...[...bySlot].map(writePart),
    ]);
    if (hasConflict(eventWords)) return [...eventWords, ...quarantineIds];
    await Promise.all([
      release && submitAsync(computeSlot(release.budgetKey), { ...emptyGroup, release }, delivery),
      position?.cursor &&
        submitAsync(
          computeSlot(position.cursor.key),
          { ...emptyGroup, position, bytes: position.at.value?.length ?? 0 },
          delivery,
        ),
    ]);
    return [...eventWords, ...quarantineIds];
  }
}

function createGroup(
  batch: PublishBatch,
  policy: string,
  newQuarantineId: NewId,
  quarantineBytes: number | undefined,
): PublishGroup {
  const { channel, events, position, release, signed } = batch;
  const quarantine =
    batch.quarantine && batch.quarantine.items.length > 0
      ? encodeQuarantine(channel, batch.quarantine, newQuarantineId, quarantineBytes)
      : undefined;
  let bytes = quarantine?.bytes ?? 0;
  for (const event of events) bytes += event.bytes;
  return {
    policy,
    events,
    bytes,
    // Set every member, even to `undefined`, so that V8 gives all groups the same object shape.
    position: position && {
      source: channel.number,
      at: position,
      cursor: { key: cursorKey(channel.number), commits: true },
    },
    quarantine,
    release:
      release && release.length > 0
        ? { budgetKey: quarantineBudgetKey(channel.organizationId), ids: release }
        : undefined,
    signed: signed && {
      memoryKey: signedBytesKey(channel.number),
      mark: signed.identity + signed.digest,
    },
  };
}

/**
 * Returns a function that encodes a policy as text and caches the last result. Most channels have equal policies, and returning the same
 * string object makes later comparisons cheap.
 *
 * Uses `join`, because V8 stores the result of a template literal in pieces and would have to join them at each delivery.
 */
function createPolicyEncoder(): (policy: PublishPolicy) => string {
  let last: PublishPolicy | undefined;
  let text = "";
  return (policy) => {
    const { dedupeWindowMs, maxEntries, conflict } = policy;
    if (
      last?.dedupeWindowMs !== dedupeWindowMs ||
      last.maxEntries !== maxEntries ||
      last.conflict !== conflict
    ) {
      const word = conflict === "report" ? "r" : "d";
      text = [dedupeWindowMs, computeSlicing(dedupeWindowMs), maxEntries, word].join(" ");
      last = policy;
    }
    return text;
  };
}

/** Returns the name of the shortest time slice length for deduplication. Four slices must cover the whole dedupe window. */
export function computeSlicing(dedupeWindowMs: number): string {
  const steps = Math.ceil(Math.log2(dedupeWindowMs / DEFAULT_WINDOW_MS));
  return String.fromCharCode(DEFAULT_SLICING + Math.max(SHORTEST_SLICING, Math.min(steps, LONGEST_SLICING)));
}

const fitsOneCall = ({ bytes, events }: PublishGroup): boolean =>
  events.length <= MAX_CALL_EVENTS && bytes <= MAX_CALL_BYTES;

const splitWords = (reply: string): readonly string[] => (reply === "" ? NO_WORDS : reply.split(" "));

function parseReply(words: readonly string[], events: number): PublishResult {
  if (words.length === events) return { receipts: words.map(parseReceipt), quarantineIds: NO_WORDS };
  return { receipts: words.slice(0, events).map(parseReceipt), quarantineIds: words.slice(events) };
}

/**
 * Returns true if an event was not published. Its delivery must then go to quarantine before the cursor moves or old quarantine
 * records are deleted.
 */
const hasConflict = (eventWords: readonly string[]): boolean =>
  eventWords.includes(CONFLICT) || eventWords.includes(REPLAYED);

function parseReceipt(word: string): Receipt {
  if (word === CONFLICT) return { status: "conflict" };
  if (word === REPLAYED) return { status: "replayed" };
  return word.startsWith("=")
    ? { status: "duplicate", entryId: word.slice(1) }
    : { status: "published", entryId: word };
}

interface Piece {
  readonly events: readonly OutgoingEvent[];
  readonly bytes: number;
}

/** Splits events into ordered pieces that each fit into one script call. An event above the byte limit gets a piece of its own. */
function splitEvents(events: readonly OutgoingEvent[]): readonly Piece[] {
  const pieces: Piece[] = [];
  let piece: OutgoingEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    if (piece.length === MAX_CALL_EVENTS || (piece.length > 0 && bytes + event.bytes > MAX_CALL_BYTES)) {
      pieces.push({ events: piece, bytes });
      piece = [];
      bytes = 0;
    }
    piece.push(event);
    bytes += event.bytes;
  }
  if (piece.length > 0) pieces.push({ events: piece, bytes });
  return pieces;
}
