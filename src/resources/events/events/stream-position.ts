import { createHash } from "node:crypto";
import { compareEntryIds, ENTRY_ID, idBefore, parseEntryMs } from "../../../bus/entry-id.ts";

/**
 * Where a reader of several topics stands: it has all entries of before `sinceMs` (by the servers' clocks), and of the topics in
 * `exact`, named by their tags, all up to that id.
 */
export interface Position {
  readonly sinceMs: number;
  readonly exact: ReadonlyMap<string, string>;
}

/** Topics named in one position, the most recent ones; events of others come twice where it is resumed. */
const MAX_EXACT = 100;
const TEXT = /^\d{1,15}(?:\.[A-Za-z0-9_-]{8}:\d{1,20}-\d{1,20}){0,100}$/;
const TAG_CHARS = 8;

/** Names a topic within a position. */
export const tagOf = (topic: string): string =>
  createHash("sha256").update(topic).digest("base64url").slice(0, TAG_CHARS);

/** A position as an event's id; undefined for a text that is none. */
export function parsePosition(text: string): Position | undefined {
  if (!TEXT.test(text)) return undefined;
  const [sinceMs = "", ...parts] = text.split(".");
  const exact = new Map(parts.map((part) => [part.slice(0, TAG_CHARS), part.slice(TAG_CHARS + 1)]));
  if (![...exact.values()].every((id) => ENTRY_ID.test(id))) return undefined;
  return { sinceMs: Number(sinceMs), exact };
}

/** The id after which a reader that stands there reads on in a topic. */
export function afterOf({ sinceMs, exact }: Position, topic: string): string {
  const since = idBefore(sinceMs);
  const known = exact.get(tagOf(topic));
  return known !== undefined && compareEntryIds(known, since) > 0 ? known : since;
}

/** Keeps the position of one reader while it moves on. */
export class MovingPosition {
  #sinceMs: number;
  /** By tag; the most recently moved last. */
  readonly #exact: Map<string, string>;
  readonly #tags = new Map<string, string>();

  constructor({ sinceMs, exact }: Position) {
    this.#sinceMs = sinceMs;
    this.#exact = new Map(exact);
  }

  /** All of before that time has been read. An id says whole milliseconds. */
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
