import type { ChannelIdentity } from "../../event/channel.ts";
import type { OutgoingEvent, SignedMark } from "../../event/event.ts";
import type { SourcePosition } from "../../event/received.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { createFairBudget } from "../../lib/fair-budget.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import type { NewId } from "../../lib/ids.ts";
import type { RedisBus } from "../connection/redis.ts";
import { cursorKey, quarantineBudgetKey, signedBytesKey, slotOf } from "../keys.ts";
import {
  encodeLimits,
  encodeQuarantine,
  QUARANTINE_LIMITS,
  type QuarantineLimits,
  type QuarantineWrite,
} from "../quarantine/quarantine-record.ts";
import type { PublishGroup } from "./publish-call.ts";
import { createLanes, type DeliveryOnItsWay, MAX_CALL_BYTES, MAX_CALL_EVENTS } from "./publish-lanes.ts";

export interface PublishPolicy {
  readonly dedupeWindowMs: number;
  /** A known id with other data: reported as a conflict, or taken for a duplicate. */
  readonly onConflict: "report" | "duplicate";
  readonly maxEntries: number;
  /** Of each topic; handed on to `onAppended`, by which retention keeps up with busy topics. */
  readonly maxBytes?: number;
}

/** One delivery. */
export interface PublishBatch {
  readonly channel: ChannelIdentity;
  readonly events: readonly OutgoingEvent[];
  readonly policy: PublishPolicy;
  /** Items of the same delivery that are known to have failed. */
  readonly quarantine?: QuarantineWrite | undefined;
  /** Quarantine records that this publish replaces (a re-drive). They stay where an event of it conflicts. */
  readonly release?: readonly string[] | undefined;
  /**
   * What was signed, where that tells replays: remembered in its channel for the dedupe window. Under another mark of ids and types
   * than at first nothing of the delivery is published that is not known by its id.
   */
  readonly signed?: SignedMark | undefined;
  /** Of a pull source: where it stands once this delivery is written. It stays where an event conflicts. */
  readonly position?: SourcePosition | undefined;
}

export type Receipt =
  | { readonly status: "published" | "duplicate"; readonly entryId: string }
  | { readonly status: "conflict" | "replayed" };

/** Parallel to the batch's `events` and to its `quarantine.items`. */
export interface PublishResult {
  readonly receipts: readonly Receipt[];
  readonly quarantineIds: readonly string[];
}

/**
 * Appends the events of a delivery, each at most once within the dedupe window, and writes its quarantine
 * records. Resolves when all of it is as durable as the gateway promises. On one Redis up to 500 events and 4
 * MiB are one script, all or nothing; more goes in such pieces, in order. In a Cluster it is one script per
 * slot, then the release and the cursor. Ends within five seconds; once sent, a call is
 * no longer given up for `signal`. The large values of events are gone once it has resolved.
 *
 * @throws UnavailableError when it was refused or its outcome is unknown; a retry is safe.
 * @throws StaleSourceError when `position` is no longer its owner's.
 */
export type Publish = (batch: PublishBatch, options: PublishOptions) => Promise<PublishResult>;

export interface PublishOptions {
  readonly signal: AbortSignal;
  /** When its sender began to wait for Redis, by `performance.now()`; default now. Calls of one delivery share it. */
  readonly sinceMs?: number;
}

/** An event that was appended under a policy with `maxBytes`. */
export type Appended = readonly [topic: string, bytes: number, maxBytes: number];

export interface PublishDeps {
  readonly redis: RedisBus;
  /** Makes the id of a quarantine record. */
  readonly newQuarantineId: NewId;
  readonly onAppended?: (...appended: Appended) => void;
  /** Told of each call of the script that was answered, with the seconds that it took. */
  readonly onCall?: (seconds: number) => void;
  /** Bytes queued and under way, beyond which publishing is refused, shared by organizations; default 64 MiB. */
  readonly maxBytesInFlight?: number;
  readonly quarantineLimits?: QuarantineLimits;
  /** What the quarantine of an organization may hold; undefined: as the limits have it. */
  readonly quarantineBytesOf?: (organizationId: string) => number | undefined;
}

const NO_WORDS: readonly string[] = [];
/** The script's words for a known id with other data, and for signed bytes known under other ids or types. */
const CONFLICT = "!";
const REPLAYED = "?";
/**
 * A larger group is a call of its own on a connection of its own: Redis takes its bytes while it works on small ones, of other
 * organizations too, and only what it does with it then keeps it from them.
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
  // What moves a cursor comes in the order of the cursor's versions, whatever its size.
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
      const whole = groupOf(batch, policy, newQuarantineId, deps.quarantineBytesOf?.(organizationId));
      if (!inFlight.take(organizationId, whole.bytes)) {
        throw new UnavailableError("too many bytes of the organization are on their way to Redis already");
      }
      const fail = (error: unknown): void => {
        inFlight.giveBack(organizationId, whole.bytes);
        reject(error);
      };
      const done = (words: readonly string[]): void => {
        inFlight.giveBack(organizationId, whole.bytes);
        const result = readWords(words, batch.events.length);
        noteAppended(batch, result);
        // Nothing of it is on its way any more, as it may be where the call has failed.
        for (const { large } of batch.events) if (large !== undefined) freeBuffer(large.bytes);
        resolve(result);
      };
      if (!isSlotted && fitsOneCall(whole)) submit(0, whole, delivery, (words) => done(wordsOf(words)), fail);
      else (isSlotted ? writeBySlot : writeInOrder)(whole, delivery).then(done, fail);
    });

  function noteAppended({ events, policy: { maxBytes } }: PublishBatch, { receipts }: PublishResult): void {
    if (onAppended === undefined || maxBytes === undefined) return;
    for (let i = 0; i < events.length; i++) {
      const event = events[i];
      if (event !== undefined && receipts[i]?.status === "published") {
        onAppended(event.topic, event.bytes, maxBytes);
      }
    }
  }

  function submitted(slot: number, group: PublishGroup, delivery: DeliveryOnItsWay): Promise<string> {
    return new Promise((resolve, reject) => submit(slot, group, delivery, resolve, reject));
  }

  /** One Redis: pieces in order. The first has the quarantine, the last the release and the cursor. */
  async function writeInOrder(whole: PublishGroup, delivery: DeliveryOnItsWay): Promise<readonly string[]> {
    const { policy, events, position, quarantine, release, signed } = whole;
    const pieces = cutEvents(events);
    if (pieces.length <= 1) return wordsOf(await submitted(0, whole, delivery));
    const checked = position?.cursor && { ...position, cursor: { ...position.cursor, commits: false } };
    const answers: string[] = [];
    let quarantineIds = NO_WORDS;
    for (const [i, piece] of pieces.entries()) {
      const isLast = i === pieces.length - 1;
      const isDone = isLast && !holdsBack(answers);
      const group: PublishGroup = {
        policy,
        ...piece,
        ...(position && { position: isDone ? position : (checked ?? position) }),
        ...(quarantine && i === 0 && { quarantine }),
        ...(release && isDone && { release }),
        ...(signed && { signed }),
      };
      const words = wordsOf(await submitted(0, group, delivery));
      for (const word of words.slice(0, piece.events.length)) answers.push(word);
      if (i === 0) quarantineIds = words.slice(piece.events.length);
    }
    return [...answers, ...quarantineIds];
  }

  /** A Cluster: signed bytes first; then a call per slot at once; then the release and the cursor. */
  async function writeBySlot(whole: PublishGroup, delivery: DeliveryOnItsWay): Promise<readonly string[]> {
    const { policy, events, position, quarantine, release, signed } = whole;
    const isReplay =
      signed !== undefined &&
      (await submitted(slotOf(signed.memoryKey), { policy, events: [], signed, bytes: 0 }, delivery)) ===
        REPLAYED;
    const answers = new Array<string>(events.length).fill("");
    const epochOnly = position && { source: position.source, at: position.at };
    const bySlot = Map.groupBy(events.entries(), ([, { topic }]) => slotOf(topic));
    const writePart = async ([slot, part]: readonly [number, (readonly [number, OutgoingEvent])[]]) => {
      const places = part.values();
      for (const piece of cutEvents(part.map(([, event]) => event))) {
        const group = { policy, ...piece, isReplay, ...(epochOnly && { position: epochOnly }) };
        for (const word of wordsOf(await submitted(slot, group, delivery))) {
          answers[places.next().value?.[0] ?? 0] = word;
        }
      }
    };
    const alone = { policy, events: [], bytes: 0 };
    const [quarantineIds] = await Promise.all([
      quarantine
        ? submitted(
            slotOf(quarantine.budgetKey),
            { ...alone, quarantine, bytes: quarantine.bytes },
            delivery,
          ).then(wordsOf)
        : NO_WORDS,
      ...[...bySlot].map(writePart),
    ]);
    if (holdsBack(answers)) return [...answers, ...quarantineIds];
    await Promise.all([
      release && submitted(slotOf(release.budgetKey), { ...alone, release }, delivery),
      position?.cursor &&
        submitted(
          slotOf(position.cursor.key),
          { ...alone, position, bytes: position.at.value?.length ?? 0 },
          delivery,
        ),
    ]);
    return [...answers, ...quarantineIds];
  }
}

function groupOf(
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
    // All groups have one shape, and no member is copied.
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
 * Gives the same text again while the policy stays as it was, as most channels leave it: a call compares it with that of the delivery
 * before, and the same text is equal without being read. Joined, for the reason that `sourceOf` has.
 */
function createPolicyEncoder(): (policy: PublishPolicy) => string {
  let last: PublishPolicy | undefined;
  let text = "";
  return (policy) => {
    const { dedupeWindowMs, maxEntries, onConflict } = policy;
    if (
      last?.dedupeWindowMs !== dedupeWindowMs ||
      last.maxEntries !== maxEntries ||
      last.onConflict !== onConflict
    ) {
      const word = onConflict === "report" ? "r" : "d";
      text = [dedupeWindowMs, slicingOf(dedupeWindowMs), maxEntries, word].join(" ");
      last = policy;
    }
    return text;
  };
}

/** The slicing (dedupe.lua) is the shortest of its ladder whose four slices cover the window. */
export function slicingOf(dedupeWindowMs: number): string {
  const steps = Math.ceil(Math.log2(dedupeWindowMs / DEFAULT_WINDOW_MS));
  return String.fromCharCode(DEFAULT_SLICING + Math.max(SHORTEST_SLICING, Math.min(steps, LONGEST_SLICING)));
}

const fitsOneCall = ({ bytes, events }: PublishGroup): boolean =>
  events.length <= MAX_CALL_EVENTS && bytes <= MAX_CALL_BYTES;

const wordsOf = (reply: string): readonly string[] => (reply === "" ? NO_WORDS : reply.split(" "));

function readWords(words: readonly string[], events: number): PublishResult {
  if (words.length === events) return { receipts: words.map(receiptOf), quarantineIds: NO_WORDS };
  return { receipts: words.slice(0, events).map(receiptOf), quarantineIds: words.slice(events) };
}

/** The cursor stays, and what is released, until the quarantine has what was not published. */
const holdsBack = (answers: readonly string[]): boolean =>
  answers.includes(CONFLICT) || answers.includes(REPLAYED);

function receiptOf(word: string): Receipt {
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

/**
 * Cuts events into pieces that fit one script call each, in order; one that is larger than a call is its own
 * piece.
 */
function cutEvents(events: readonly OutgoingEvent[]): readonly Piece[] {
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
