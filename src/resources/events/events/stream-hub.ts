import { setTimeout as delay } from "node:timers/promises";
import { idBefore } from "../../../bus/entry-id.ts";
import type { Tail } from "../../../bus/topics/tail.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import type { Log } from "../../../log.ts";
import { eventJson } from "./schema.ts";
import { dataLines, type StreamClient } from "./stream-client.ts";

/** Selects all events of an app, or those of one type. */
export interface StreamFilter {
  readonly appId: string;
  readonly type: string | undefined;
}

export interface StreamMember extends StreamFilter {
  readonly client: StreamClient;
  /** Called when the app was deleted or has too many topics. Ends the stream. */
  readonly close: () => void;
}

/** Lists the matching topics. Returns `undefined` when the app was deleted or has more than `MAX_TOPICS` of them. */
export type ListTopics = (filter: StreamFilter) => Promise<readonly string[] | undefined>;

export interface StreamHubDeps {
  readonly tail: Tail;
  readonly listTopics: ListTopics;
  readonly stopping: AbortSignal;
  readonly log: Log;
}

interface Followed {
  after: string;
  readonly clients: Set<StreamClient>;
}

/** Reads the topics that this worker's clients follow, once for all clients. Idle while no client is connected. */
export interface StreamHub {
  /**
   * Adds a client.
   *
   * @param nowMs Redis time from which the hub reads topics that it does not read yet
   * @param listedMs Redis time at which the listing of `topics` began
   */
  readonly join: (member: StreamMember, topics: readonly string[], nowMs: number, listedMs: number) => void;
  readonly leave: (member: StreamMember) => void;
  /** Returns the last entry id read in a topic, or `undefined` if no client follows it. */
  readonly sharedAfter: (topic: string) => string | undefined;
  /** Returns the Redis time up to which all topics have been read completely. */
  readonly completeUntilMs: () => number;
}

/** Maximum number of topics per stream. A stream that covers more is rejected or ended. */
export const MAX_TOPICS = 1_000;
const LIMITS = { entries: 200, bytes: 1024 * 1024 } as const;
const READ_EVERY_MS = 100;
const LISTS_AT_ONCE = 4;
/** Interval of listing topics, so that streams follow the topics of new event definitions within two seconds. */
const LIST_EVERY_MS = 1_500;
const AFTER_FAILURE_MS = 1_000;
const MAX_PAUSE_MS = 1_000;
/** Tolerated difference between the clocks of Redis servers. Up to this difference, a resuming reader misses no event. */
const MARGIN_MS = 5_000;

export function createStreamHub({ tail, listTopics, stopping, log }: StreamHubDeps): StreamHub {
  const members = new Set<StreamMember>();
  const followed = new Map<string, Followed>();
  /** Incremented for each newly followed topic. A read during which it changes is not complete. */
  let generation = 0;
  let turn = 0;
  let timeMs = 0;
  let completeMs = 0;
  let listedMs = 0;
  let listedAt = Number.NEGATIVE_INFINITY;
  /** Incremented when a client joins. A listing of topics does not cover clients that joined while it ran. */
  let joined = 0;
  let isRunning = false;

  function follow({ client }: StreamMember, topic: string, fromMs: number): void {
    const known = followed.get(topic);
    if (known) known.clients.add(client);
    else {
      followed.set(topic, { after: idBefore(fromMs), clients: new Set([client]) });
      generation++;
    }
    client.follow(topic);
  }

  function unfollow({ client }: StreamMember, topic: string): void {
    client.unfollow(topic);
    const known = followed.get(topic);
    known?.clients.delete(client);
    if (known?.clients.size === 0) followed.delete(topic);
  }

  function leave(member: StreamMember): void {
    if (!members.delete(member)) return;
    for (const topic of [...member.client.topics()]) unfollow(member, topic);
  }

  async function list(): Promise<void> {
    const startedAt = performance.now();
    if (startedAt - listedAt < LIST_EVERY_MS) return;
    const knownMs = timeMs;
    const before = joined;
    const alike = Map.groupBy(members, ({ appId, type }) => JSON.stringify([appId, type]));
    await mapBounded([...alike.values()], LISTS_AT_ONCE, async (group) => {
      const [filter] = group;
      const topics = filter && (await listTopics(filter));
      for (const member of group) {
        if (!members.has(member)) continue;
        if (topics === undefined) member.close();
        else update(member, new Set(topics));
      }
    });
    if (before === joined) listedMs = knownMs;
    // The interval starts with the listing, because changes made after its start may be missing.
    listedAt = startedAt;
  }

  function update(member: StreamMember, topics: ReadonlySet<string>): void {
    for (const topic of [...member.client.topics()]) if (!topics.has(topic)) unfollow(member, topic);
    for (const topic of topics) if (!member.client.has(topic)) follow(member, topic, timeMs - MARGIN_MS);
  }

  async function read(): Promise<boolean> {
    const before = generation;
    // Start with a different topic each time, so that busy topics cannot fill every read.
    const all = [...followed];
    const first = all.length === 0 ? 0 : turn++ % all.length;
    const inTurn = new Map([...all.slice(first), ...all.slice(0, first)]);
    const places = [...inTurn].map(([topic, { after }]) => [topic, after] as const);
    const result = await tail.read(places, LIMITS, (topic, entry) => {
      const known = followed.get(topic);
      // Skip a topic that was unfollowed during the read. It may have been followed again from an earlier position.
      if (!known || known !== inTurn.get(topic)) return;
      known.after = entry.entryId;
      const data = dataLines(eventJson(topic, entry));
      for (const client of known.clients) client.offer(topic, entry.entryId, data);
    });
    timeMs = result.timeMs;
    if (!result.more && before === generation) completeMs = result.timeMs;
    return result.more;
  }

  async function run(): Promise<void> {
    let failing = false;
    while (members.size > 0 && !stopping.aborted) {
      const startedAt = performance.now();
      let pauseMs = READ_EVERY_MS;
      try {
        const more = await read();
        // Pauses longer after a slow read, to reduce the load on Redis.
        const slowMs = Math.min(2 * (performance.now() - startedAt), MAX_PAUSE_MS);
        pauseMs = more ? 0 : Math.max(READ_EVERY_MS, slowMs);
        // Not awaited, so that a client catching up does not delay the others. The next iteration retries failures.
        for (const { client } of members) client.catchUp().catch(() => {});
        await list();
        failing = false;
      } catch (error) {
        if (!failing)
          log.warn(
            { event: "event_streams.failing", err: error },
            "Could not read topics for event streams. The streams pause until Redis can be read again.",
          );
        failing = true;
        pauseMs = AFTER_FAILURE_MS;
      }
      await delay(pauseMs, undefined, { signal: stopping }).catch(() => {});
    }
  }

  function start(): void {
    if (isRunning || stopping.aborted) return;
    isRunning = true;
    void run().finally(() => {
      isRunning = false;
      if (members.size > 0) start();
    });
  }

  return {
    join(member, topics, nowMs, knownMs) {
      members.add(member);
      joined++;
      timeMs = Math.max(timeMs, nowMs);
      // The new client's topics have been read only up to `nowMs`, and listed only up to `knownMs`.
      completeMs = Math.min(completeMs, nowMs);
      listedMs = Math.min(listedMs, knownMs);
      for (const topic of topics) follow(member, topic, nowMs);
      start();
    },
    leave,
    sharedAfter: (topic) => followed.get(topic)?.after,
    completeUntilMs: () => Math.min(completeMs, listedMs) - MARGIN_MS,
  };
}
