import { compareEntryIds, idBefore, parseEntryMs } from "../../../bus/entry-id.ts";
import type { Tail } from "../../../bus/topics/tail.ts";
import { eventJson } from "./schema.ts";
import { afterOf, MovingPosition, type Position } from "./stream-position.ts";

/** Output to a reader. `isFull` returns true while too much written data is waiting to be sent. */
export interface StreamSink {
  readonly isFull: () => boolean;
  readonly write: (text: string) => void;
}

export interface StreamClientDeps {
  readonly tail: Tail;
  readonly sink: StreamSink;
  /** Returns the last entry id that the reader shared by all clients has read in a topic. `undefined` if it does not read the topic. */
  readonly sharedAfter: (topic: string) => string | undefined;
  /** Returns the Redis time up to which the shared reader has read all topics completely. */
  readonly completeUntilMs: () => number;
  readonly start: Position;
}

/** A client connected to an event stream, with its position in each topic. */
export interface StreamClient {
  readonly topics: () => Iterable<string>;
  /** Starts to follow a topic from the reader's position. */
  readonly follow: (topic: string) => void;
  readonly unfollow: (topic: string) => void;
  readonly has: (topic: string) => boolean;
  /** Called for each entry that the shared reader reads. `data` is the event as `data:` lines of a server-sent event. */
  readonly offer: (topic: string, entryId: string, data: string) => void;
  /** Reads the entries that the reader has missed, until the output is full. */
  readonly catchUp: () => Promise<void>;
  /** Sends the reader's current position, which also keeps the connection alive. */
  readonly beat: () => void;
}

const PAGE = { entries: 100, bytes: 256 * 1024 } as const;

/**
 * Creates the state of one connected client.
 *
 * A client that keeps up receives entries from the shared reader (`StreamHub`). A topic is behind after a resumption, or
 * when an entry arrived while the output was full. The client then reads this topic from its own position. A slow client
 * therefore needs no buffer and misses no entries.
 */
export function createStreamClient(deps: StreamClientDeps): StreamClient {
  const { tail, sink, sharedAfter, completeUntilMs, start } = deps;
  const places = new Map<string, string>();
  const behind = new Set<string>();
  const position = new MovingPosition(start);
  let catchingUp: Promise<void> | undefined;

  function send(topic: string, entryId: string, data: string): void {
    places.set(topic, entryId);
    position.move(topic, entryId);
    sink.write(`id: ${position}\n${data}\n\n`);
  }

  function raiseSince(): void {
    let sinceMs = completeUntilMs();
    for (const topic of behind) sinceMs = Math.min(sinceMs, parseEntryMs(places.get(topic) ?? "0-0"));
    position.raiseSince(sinceMs);
  }

  /** Returns the topic that is furthest behind, so that events are sent roughly in order of time. */
  function furthestBehind(): string | undefined {
    let furthest: string | undefined;
    for (const topic of behind) {
      const place = places.get(topic) ?? "0-0";
      if (furthest === undefined || compareEntryIds(place, places.get(furthest) ?? "0-0") < 0)
        furthest = topic;
    }
    return furthest;
  }

  async function readOn(topic: string): Promise<void> {
    const sharedBefore = sharedAfter(topic);
    const after = places.get(topic) ?? idBefore(start.sinceMs);
    const { more } = await tail.read([[topic, after]], PAGE, (from, entry) => {
      if (places.has(from)) send(from, entry.entryId, dataLines(eventJson(from, entry)));
    });
    // If the shared reader advanced during this read, the client missed its entries, so the topic remains behind.
    if (more || sharedAfter(topic) !== sharedBefore) return;
    behind.delete(topic);
    // The client has now read all entries up to the shared reader's position, except those trimmed from the topic.
    const place = places.get(topic);
    if (sharedBefore !== undefined && place !== undefined && compareEntryIds(place, sharedBefore) < 0) {
      places.set(topic, sharedBefore);
    }
  }

  async function readAll(): Promise<void> {
    for (let topic = furthestBehind(); topic !== undefined; topic = furthestBehind()) {
      if (sink.isFull()) return;
      raiseSince();
      await readOn(topic);
    }
  }

  return {
    topics: () => places.keys(),
    has: (topic) => places.has(topic),
    follow(topic) {
      const place = afterOf(start, topic);
      const shared = sharedAfter(topic);
      places.set(topic, place);
      if (shared === undefined || compareEntryIds(place, shared) < 0) behind.add(topic);
    },
    unfollow(topic) {
      places.delete(topic);
      behind.delete(topic);
    },
    offer(topic, entryId, data) {
      const place = places.get(topic);
      if (place === undefined || behind.has(topic) || compareEntryIds(entryId, place) <= 0) return;
      if (sink.isFull()) {
        behind.add(topic);
        return;
      }
      raiseSince();
      send(topic, entryId, data);
    },
    catchUp() {
      catchingUp ??= readAll().finally(() => {
        catchingUp = undefined;
      });
      return catchingUp;
    },
    beat() {
      if (sink.isFull()) return;
      raiseSince();
      sink.write(`:\nid: ${position}\n\n`);
    },
  };
}

/** Formats JSON as `data:` lines. Readers can join the lines, because line breaks in JSON occur only between tokens. */
export const dataLines = (json: string): string =>
  json
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}`)
    .join("\n");
