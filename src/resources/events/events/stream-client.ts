import { compareEntryIds, idBefore, parseEntryMs } from "../../../bus/entry-id.ts";
import type { Tail } from "../../../bus/topics/tail.ts";
import { eventJson } from "./schema.ts";
import { afterOf, MovingPosition, type Position } from "./stream-position.ts";

/** The line to a reader. It is full while what was written is not taken. */
export interface StreamSink {
  readonly isFull: () => boolean;
  readonly write: (text: string) => void;
}

export interface StreamClientDeps {
  readonly tail: Tail;
  readonly sink: StreamSink;
  /** How far the shared reading of a topic has come; undefined where it is not shared. */
  readonly sharedAfter: (topic: string) => string | undefined;
  /** Until when the shared reading has everything of all topics, by the servers' clocks. */
  readonly completeUntilMs: () => number;
  readonly start: Position;
}

/** One reader of the events of several topics. */
export interface StreamClient {
  readonly topics: () => Iterable<string>;
  /** Follows a topic, from where the reader stands in it. */
  readonly follow: (topic: string) => void;
  readonly unfollow: (topic: string) => void;
  readonly has: (topic: string) => boolean;
  /** An entry that the shared reading has come to; `data` is its event as lines of data. */
  readonly offer: (topic: string, entryId: string, data: string) => void;
  /** Reads for itself what it lacks, as far as the line takes it. */
  readonly catchUp: () => Promise<void>;
  /** Says where the reader stands, and that the line is alive. */
  readonly beat: () => void;
}

const PAGE = { entries: 100, bytes: 256 * 1024 } as const;

/**
 * A topic is live, and its entries come from the shared reading, or behind, and the client reads on from its own place in it: after
 * a resumption, and where its line was full when an entry came. So nothing is held for a slow reader, and nothing is passed
 * over.
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

  /** The topic that is furthest behind: so what is older comes first, by and large. */
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
    // The shared reading has gone on meanwhile, and handed nothing on here.
    if (more || sharedAfter(topic) !== sharedBefore) return;
    behind.delete(topic);
    // Whatever stood before the shared reading and is not read by now is gone.
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

/** A payload may hold line ends between its tokens, where they mean nothing: each line of data is one of the event's. */
export const dataLines = (json: string): string =>
  json
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}`)
    .join("\n");
