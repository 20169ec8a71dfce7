import { createHash } from "node:crypto";
import { compareEntryIds, ENTRY_ID, idBefore, parseEntryMs } from "../../../bus/entry-id.ts";

/**
 * Position of a client in several topics. The client has received all entries before `sinceMs` (Redis time), and those
 * up to the ids in `exact`, which is keyed by `tagOf(topic)`.
 */
export interface Position {
  readonly sinceMs: number;
  readonly exact: ReadonlyMap<string, string>;
}

/** Maximum number of topics in `exact`. Above this, the least recently active topic is dropped, so its events may be sent again. */
const MAX_EXACT = 100;
const TEXT = /^\d{1,15}(?:\.[A-Za-z0-9_-]{8}:\d{1,20}-\d{1,20}){0,100}$/;
const TAG_CHARS = 8;

/** Hashes a topic name to a short tag, which represents the topic in a position. */
export const tagOf = (topic: string): string =>
  createHash("sha256").update(topic).digest("base64url").slice(0, TAG_CHARS);

/** Parses a position from the `id` of a server-sent event. Returns `undefined` if the text is invalid. */
export function parsePosition(text: string): Position | undefined {
  if (!TEXT.test(text)) return undefined;
  const [sinceMs = "", ...parts] = text.split(".");
  const exact = new Map(parts.map((part) => [part.slice(0, TAG_CHARS), part.slice(TAG_CHARS + 1)]));
  if (![...exact.values()].every((id) => ENTRY_ID.test(id))) return undefined;
  return { sinceMs: Number(sinceMs), exact };
}

/** Returns the entry id after which a client at this position continues to read the topic. */
export function afterOf({ sinceMs, exact }: Position, topic: string): string {
  const since = idBefore(sinceMs);
  const known = exact.get(tagOf(topic));
  return known !== undefined && compareEntryIds(known, since) > 0 ? known : since;
}

export class MovingPosition {
  #sinceMs: number;
  /** Last received entry id by topic tag. The most recently updated topic comes last. */
  readonly #exact: Map<string, string>;
  readonly #tags = new Map<string, string>();

  constructor({ sinceMs, exact }: Position) {
    this.#sinceMs = sinceMs;
    this.#exact = new Map(exact);
  }

  /**
   * Records that all entries before this time have been received. The time is rounded down, because entry ids contain whole milliseconds.
   */
  raiseSince(timeMs: number): void {
    const sinceMs = Math.floor(timeMs);
    if (sinceMs <= this.#sinceMs) return;
    this.#sinceMs = sinceMs;
    for (const [tag, id] of this.#exact) if (parseEntryMs(id) < sinceMs) this.#exact.delete(tag);
  }

  move(topic: string, entryId: string): void {
    const tag = this.#tags.get(topic) ?? tagOf(topic);
    this.#tags.set(topic, tag);
    this.#exact.delete(tag);
    this.#exact.set(tag, entryId);
    if (this.#exact.size <= MAX_EXACT) return;
    for (const oldest of this.#exact.keys()) {
      this.#exact.delete(oldest);
      break;
    }
  }

  toString(): string {
    let text = String(this.#sinceMs);
    for (const [tag, id] of this.#exact) text += `.${tag}:${id}`;
    return text;
  }
}
