import { hasUsualNames } from "../../event/cloud-event.ts";
import type { OutgoingEvent } from "../../event/event.ts";
import type { SourcePosition } from "../../event/received.ts";
import type { NewId } from "../../lib/ids.ts";
import { cursorKey, quarantineBudgetKey, signedBytesKey } from "../keys.ts";
import { type EncodedQuarantine, encodeQuarantine } from "../quarantine/quarantine-record.ts";
import type { PublishBatch, PublishPolicy, PublishResult, Receipt } from "./publish-batch.ts";

/** The part of a delivery that one script call writes to Redis. In a Cluster, the caller must ensure that all its keys share a slot. */
export interface PublishGroup {
  readonly policy: string;
  readonly events: readonly OutgoingEvent[];
  readonly position?: GroupPosition | undefined;
  readonly quarantine?: EncodedQuarantine | undefined;
  readonly release?: { readonly budgetKey: string; readonly ids: readonly string[] } | undefined;
  /** Fingerprint of the signed delivery, for detecting replays. `memoryKey` is the key prefix of known fingerprints. */
  readonly signed?: { readonly memoryKey: string; readonly mark: string } | undefined;
  /** Whether the same signed bytes arrived before with other event ids or types. A replay publishes no new events. */
  readonly isReplay?: boolean;
  /** Estimated size in bytes, which limits how many groups fit into one call. */
  readonly bytes: number;
}

interface GroupPosition {
  readonly at: SourcePosition;
  /** The stored cursor. `undefined` if the cursor is in another Cluster slot, and only the fencing tokens of the topics can be checked. */
  readonly cursor?: { readonly key: string; readonly commits: boolean };
}

const DEFAULT_WINDOW_MS = 86_400_000;
const DEFAULT_SLICING = "r".charCodeAt(0);
const SHORTEST_SLICING = -17;
const LONGEST_SLICING = 5;

export interface QuarantineDeps {
  readonly newQuarantineId: NewId;
  /** Returns the quarantine limit of an organization in bytes. `undefined` means the default in `quarantineLimits`. */
  readonly getQuarantineLimitBytes?: (organizationId: string) => number | undefined;
}

/** Creates the group of a whole delivery. */
export function createGroup(
  batch: PublishBatch,
  policy: string,
  { newQuarantineId, getQuarantineLimitBytes }: QuarantineDeps,
): PublishGroup {
  const { channel, events, position, release, signed } = batch;
  const quarantine =
    batch.quarantine && batch.quarantine.items.length > 0
      ? encodeQuarantine(
          channel,
          batch.quarantine,
          newQuarantineId,
          getQuarantineLimitBytes?.(channel.organizationId),
        )
      : undefined;
  let bytes = quarantine?.bytes ?? 0;
  for (const event of events) bytes += event.bytes;
  return {
    policy,
    events,
    bytes,
    // Set every member, even to `undefined`, so that V8 gives all groups the same object shape.
    position: position && {
      at: position,
      cursor: { key: cursorKey(position.source), commits: true },
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
export function createPolicyEncoder(): (policy: PublishPolicy) => string {
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

type Arg = string | Buffer;

/**
 * Returns the arguments of EVALSHA after the script's hash: number of keys, keys, ARGV. `publish.lua` and `publish-group.lua`
 * describe the format.
 */
export function encodeCall(
  groups: readonly PublishGroup[],
  settings: {
    /** Whether WAIT follows the call. The script then always writes, because WAIT must also confirm that duplicates are durable. */
    readonly mustWrite: boolean;
    readonly quarantineLimits: string;
  },
): Arg[] {
  const call: Call = {
    args: [],
    keys: new NumberedTexts(),
    templates: new NumberedTexts(),
    lastTemplates: new Map(),
  };
  for (const group of groups) encodeGroup(group, call);
  const { args, keys, templates: forms } = call;
  return [
    String(keys.texts.length),
    ...keys.texts,
    settings.mustWrite ? "1" : "0",
    settings.quarantineLimits,
    String(forms.texts.length),
    ...forms.texts,
    ...args,
  ];
}

interface Call {
  readonly args: Arg[];
  readonly keys: NumberedTexts;
  readonly templates: NumberedTexts;
  /** The last used template of each topic. The next event usually has the same template, so its text can be reused. */
  readonly lastTemplates: Map<string, EventTemplate>;
}

/** Values that many events of a call share. Each template is sent to Redis only once per call. */
interface EventTemplate {
  readonly number: string;
  readonly policy: string;
  readonly memoryKey: string | undefined;
  /** Number of strings in the stream entry. 0 if the template has all values except id, time and data. */
  readonly count: number;
  readonly source: string | undefined;
  readonly type: string | undefined;
  readonly contentType: string | undefined;
}

/** Collects distinct texts and numbers them from 1. */
class NumberedTexts {
  readonly texts: string[] = [];
  readonly #numbers = new Map<string, string>();

  numberFor(text: string): string {
    let number = this.#numbers.get(text);
    if (number === undefined) {
      number = String(this.texts.push(text));
      this.#numbers.set(text, number);
    }
    return number;
  }
}

function encodeGroup(group: PublishGroup, call: Call): void {
  const { events, position, quarantine, release, signed, isReplay = false } = group;
  const { args, keys } = call;
  const [event] = events;
  if (event !== undefined && events.length === 1 && !position && !quarantine && !release && !isReplay) {
    encodeEvent(event, group.policy, signed, call);
    return;
  }
  const parts =
    (position ? 1 : 0) + (quarantine ? 2 : 0) + (release ? 4 : 0) + (signed ? 8 : 0) + (isReplay ? 16 : 0);
  args.push(`${group.policy} ${events.length} ${parts}`);
  if (position) {
    const { at, cursor } = position;
    args.push(String(at.source), String(at.epoch), String(at.version));
    if (cursor === undefined) args.push("0");
    else if (cursor.commits) {
      args.push(`-${keys.numberFor(cursor.key)}`, at.value === undefined ? "=" : `>${at.value}`);
    } else args.push(keys.numberFor(cursor.key));
  }
  if (quarantine) args.push(keys.numberFor(quarantine.budgetKey), ...quarantine.args);
  if (release) args.push(keys.numberFor(release.budgetKey), String(release.ids.length), ...release.ids);
  if (signed) args.push(keys.numberFor(signed.memoryKey), signed.mark);
  for (const one of events) encodeEvent(one, group.policy, undefined, call);
}

/** Adds an event to the call. Sends only values that are not in its template, because every argument costs Redis time. */
function encodeEvent(event: OutgoingEvent, policy: string, signed: PublishGroup["signed"], call: Call): void {
  const { args } = call;
  const { fields } = event;
  const template = findOrAddTemplate(event, policy, signed?.memoryKey, call);
  args.push(template.number, event.identity === "" ? "" : event.identity + event.digest);
  if (signed) args.push(signed.mark);
  if (template.count === 0)
    args.push(fields[3] ?? "", fields[9] ?? "", event.large?.bytes ?? fields[13] ?? "");
  else {
    const first = args.length;
    args.push(...fields);
    if (event.large !== undefined) args[first + event.large.at] = event.large.bytes;
  }
}

function findOrAddTemplate(
  { topic, fields }: OutgoingEvent,
  policy: string,
  memoryKey: string | undefined,
  { keys, templates: forms, lastTemplates: lastForms }: Call,
): EventTemplate {
  const isUsual = hasUsualNames(fields);
  const source = isUsual ? fields[5] : undefined;
  const type = isUsual ? fields[7] : undefined;
  const contentType = isUsual ? fields[11] : undefined;
  const last = lastForms.get(topic);
  if (
    last !== undefined &&
    last.policy === policy &&
    last.memoryKey === memoryKey &&
    last.source === source &&
    last.type === type &&
    last.contentType === contentType &&
    (isUsual ? last.count === 0 : last.count === fields.length)
  )
    return last;
  // Checks for line breaks, because a template has one line per value. Only the last value may contain a line break.
  const count = isUsual && !source?.includes("\n") && !type?.includes("\n") ? 0 : fields.length;
  const places = `${keys.numberFor(topic)} ${memoryKey === undefined ? "0" : keys.numberFor(memoryKey)}`;
  const common = count === 0 ? `\n${source}\n${type}\n${contentType}` : "";
  const number = forms.numberFor(`${policy} ${places} ${count}${common}`);
  const template = { number, policy, memoryKey, count, source, type, contentType };
  lastForms.set(topic, template);
  return template;
}

export const NO_WORDS: readonly string[] = [];
/** Words in the script's reply: `!` for a known id with other data, `?` for signed bytes known with other ids or types. */
export const CONFLICT = "!";
export const REPLAYED = "?";

export const splitWords = (reply: string): readonly string[] => (reply === "" ? NO_WORDS : reply.split(" "));

/** Converts the words of the script's reply: one for each event, then one id for each quarantined item. */
export function parseReply(words: readonly string[], events: number): PublishResult {
  if (words.length === events) return { receipts: words.map(parseReceipt), quarantineIds: NO_WORDS };
  return { receipts: words.slice(0, events).map(parseReceipt), quarantineIds: words.slice(events) };
}

function parseReceipt(word: string): Receipt {
  if (word === CONFLICT) return { status: "conflict" };
  if (word === REPLAYED) return { status: "replayed" };
  return word.startsWith("=")
    ? { status: "duplicate", entryId: word.slice(1) }
    : { status: "published", entryId: word };
}
