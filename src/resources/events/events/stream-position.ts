import { createHash } from "node:crypto";
import { compareEntryIds, ENTRY_ID, idBefore, parseEntryMs } from "../../../bus/entry-id.ts";

/**
 * Position of a reader in several topics. The reader has received all entries before `sinceMs` (Redis time). For a topic
 * in `exact`, the reader has received all entries up to the given id. The keys of `exact` are topic tags (`tagOf`).
 */
export interface Position {
  readonly sinceMs: number;
  readonly exact: ReadonlyMap<string, string>;
}

/** Maximum number of topics in `exact`. The least recently active one is dropped, and its events may repeat after a resumption. */
const MAX_EXACT = 100;
const TEXT = /^\d{1,15}(?:\.[A-Za-z0-9_-]{8}:\d{1,20}-\d{1,20}){0,100}$/;
const TAG_CHARS = 8;

/** Shortens a topic name to the tag that stands for the topic in a position. */
export const tagOf = (topic: string): string =>
  createHash("sha256").update(topic).digest("base64url").slice(0, TAG_CHARS);

/** Parses the `id` of a stream event. Returns `undefined` for invalid text. */
export function parsePosition(text: string): Position | undefined {
  if (!TEXT.test(text)) return undefined;
  const [sinceMs = "", ...parts] = text.split(".");
  const exact = new Map(parts.map((part) => [part.slice(0, TAG_CHARS), part.slice(TAG_CHARS + 1)]));
  if (![...exact.values()].every((id) => ENTRY_ID.test(id))) return undefined;
  return { sinceMs: Number(sinceMs), exact };
}

/** Returns the entry id after which a reader at this position continues in a topic. */
export function afterOf({ sinceMs, exact }: Position, topic: string): string {
  const since = idBefore(sinceMs);
  const known = exact.get(tagOf(topic));
  return known !== undefined && compareEntryIds(known, since) > 0 ? known : since;
}

export class MovingPosition {
  #sinceMs: number;
  /** Entry ids by topic tag, the most recently updated last. */
  readonly #exact: Map<string, string>;
  readonly #tags = new Map<string, string>();

  constructor({ sinceMs, exact }: Position) {
    this.#sinceMs = sinceMs;
    this.#exact = new Map(exact);
  }

  /** Records that all entries before this time have been read. Rounds down, because ids contain whole milliseconds. */
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
