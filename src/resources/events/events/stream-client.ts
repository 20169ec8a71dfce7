import { compareEntryIds, idBefore, parseEntryMs } from "../../../bus/entry-id.ts";
import type { Tail } from "../../../bus/topics/tail.ts";
import { eventJson } from "./schema.ts";
import { afterOf, MovingPosition, type Position } from "./stream-position.ts";

/** Connection to the client. `isFull` returns true while too much data is waiting to be sent. */
export interface StreamSink {
  readonly isFull: () => boolean;
  readonly write: (text: string) => void;
}

export interface StreamClientDeps {
  readonly tail: Tail;
  readonly sink: StreamSink;
  /** Returns the last entry id that was read from the topic for all clients, or `undefined` if the topic is not being read. */
  readonly sharedAfter: (topic: string) => string | undefined;
  /** Returns the Redis time up to which all topics have been read. */
  readonly completeUntilMs: () => number;
  readonly start: Position;
}

/** Client of an event stream, with a position in each of its topics. */
export interface StreamClient {
  readonly topics: () => Iterable<string>;
  /** Starts to follow a topic at the client's position. */
  readonly follow: (topic: string) => void;
  readonly unfollow: (topic: string) => void;
  readonly has: (topic: string) => boolean;
  /** Called for each entry that is read for all clients. `data` contains the event, formatted as `data:` lines of a server-sent event. */
  readonly offer: (topic: string, entryId: string, data: string) => void;
  /** Reads the entries that this client has missed. Stops when the client's connection is full. */
  readonly catchUp: () => Promise<void>;
  /** Sends the client's current position, which also keeps the connection alive. */
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

  /** Returns the topic with the oldest position, so that events of several topics are sent roughly in order of time. */
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
    // Keep the topic in `behind` if the shared position moved during this read, because the client missed those entries.
    if (more || sharedAfter(topic) !== sharedBefore) return;
    behind.delete(topic);
    // The client has read the topic up to the shared position. Trimmed entries can be skipped, because they no longer exist.
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
      // An event with a name, because many clients ignore an id without data. Clients that do not know the name ignore only the data.
      sink.write(`event: position\nid: ${position}\ndata: {}\n\n`);
    },
  };
}

/** Formats JSON as `data:` lines of a server-sent event. Clients may join the lines, because line breaks occur only between JSON tokens. */
export const dataLines = (json: string): string =>
  json
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}`)
    .join("\n");
