import { setTimeout as delay } from "node:timers/promises";
import { idBefore } from "../../../bus/entry-id.ts";
import type { Tail } from "../../../bus/topics/tail.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import type { Log } from "../../../log.ts";
import { eventJson } from "./schema.ts";
import { dataLines, type StreamClient } from "./stream-client.ts";

/** Filter of an event stream: all events of an app, or its events of one type. */
export interface StreamFilter {
  readonly appId: string;
  readonly type: string | undefined;
}

export interface StreamMember extends StreamFilter {
  readonly client: StreamClient;
  /** Ends the stream. Called when the app was deleted or has too many topics. */
  readonly close: () => void;
}

/** Lists the topics that match the filter. Returns `undefined` if the app was deleted or more than `MAX_TOPICS` match. */
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

/** Reads topics once for all event-stream clients of this worker. Idle while no client is connected. */
export interface StreamHub {
  /**
   * Adds a client.
   * @param nowMs Redis time at which reading of newly followed topics starts
   * @param listedMs Redis time at which the listing of `topics` began
   */
  readonly join: (member: StreamMember, topics: readonly string[], nowMs: number, listedMs: number) => void;
  readonly leave: (member: StreamMember) => void;
  /** Returns the id of the last entry read from a topic, or `undefined` if no client follows the topic. */
  readonly sharedAfter: (topic: string) => string | undefined;
  /** Returns the Redis time up to which every followed topic has been read. */
  readonly completeUntilMs: () => number;
}

/** Maximum number of topics per event stream. A stream with more topics is rejected, or ended if topics are added later. */
export const MAX_TOPICS = 1_000;
const LIMITS = { entries: 200, bytes: 1024 * 1024 } as const;
const READ_EVERY_MS = 100;
const LISTS_AT_ONCE = 4;
/** Interval at which topics are listed, in ms, so that streams include new topics within two seconds. */
const LIST_EVERY_MS = 1_500;
const AFTER_FAILURE_MS = 1_000;
const MAX_PAUSE_MS = 1_000;
/** Maximum clock difference between Redis servers, in ms, at which a resumed stream still misses no event. */
const MARGIN_MS = 5_000;

export function createStreamHub({ tail, listTopics, stopping, log }: StreamHubDeps): StreamHub {
  const members = new Set<StreamMember>();
  const followed = new Map<string, Followed>();
  /** Incremented when a topic is newly followed. If it changes during a read, that read did not cover all topics. */
  let generation = 0;
  let turn = 0;
  let timeMs = 0;
  let completeMs = 0;
  let listedMs = 0;
  let listedAt = Number.NEGATIVE_INFINITY;
  /** Incremented when a client joins. If it changes during a listing, that listing did not cover all clients. */
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
    // Measure the interval from the start of the listing, because the listing may miss changes made after its start.
    listedAt = startedAt;
  }

  function update(member: StreamMember, topics: ReadonlySet<string>): void {
    for (const topic of [...member.client.topics()]) if (!topics.has(topic)) unfollow(member, topic);
    for (const topic of topics) if (!member.client.has(topic)) follow(member, topic, timeMs - MARGIN_MS);
  }

  async function read(): Promise<boolean> {
    const before = generation;
    // Rotate the order of the topics, so that busy topics do not use up the limit of every read.
    const all = [...followed];
    const first = all.length === 0 ? 0 : turn++ % all.length;
    const inTurn = new Map([...all.slice(first), ...all.slice(0, first)]);
    const places = [...inTurn].map(([topic, { after }]) => [topic, after] as const);
    const result = await tail.read(places, LIMITS, (topic, entry) => {
      const known = followed.get(topic);
      // Skip a topic that was unfollowed during the read, because another client may have followed it again from an earlier position.
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
        // Wait longer after a slow read, to reduce the load on Redis.
        const slowMs = Math.min(2 * (performance.now() - startedAt), MAX_PAUSE_MS);
        pauseMs = more ? 0 : Math.max(READ_EVERY_MS, slowMs);
        // Not awaited, because a client that catches up must not delay the others. Failures are retried in the next iteration.
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
      // Lower both times, because the new client's topics were read only up to `nowMs` and listed only up to `knownMs`.
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
