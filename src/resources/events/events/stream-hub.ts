import { setTimeout as delay } from "node:timers/promises";
import { idBefore } from "../../../bus/entry-id.ts";
import type { Tail } from "../../../bus/topics/tail.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import type { Log } from "../../../log.ts";
import { eventJson } from "./schema.ts";
import { dataLines, type StreamClient } from "./stream-client.ts";

/** Which events: those of an app, all or of one type. */
export interface StreamFilter {
  readonly appId: string;
  readonly type: string | undefined;
}

export interface StreamMember extends StreamFilter {
  readonly client: StreamClient;
  /** Ends it: its app is gone, or has become too large. */
  readonly close: () => void;
}

/** The topics of such events; undefined where the app is gone, or there are more than `MAX_TOPICS`. */
export type ListTopics = (filter: StreamFilter) => Promise<readonly string[] | undefined>;

export interface StreamHubDeps {
  readonly tail: Tail;
  readonly listTopics: ListTopics;
  readonly stopping: AbortSignal;
  readonly log: Log;
}

/** A topic that somebody follows. */
interface Followed {
  after: string;
  readonly clients: Set<StreamClient>;
}

/** One reading of all topics that anybody on this worker follows. It rests while there is nobody. */
export interface StreamHub {
  /**
   * @param nowMs the servers' time: the shared reading of a topic that nobody followed begins there
   * @param listedMs their time when the listing of the topics was begun
   */
  readonly join: (member: StreamMember, topics: readonly string[], nowMs: number, listedMs: number) => void;
  readonly leave: (member: StreamMember) => void;
  /** How far a topic has been read; undefined where nobody follows it. */
  readonly sharedAfter: (topic: string) => string | undefined;
  /** Until when everything of all topics has been read, by the servers' clocks. */
  readonly completeUntilMs: () => number;
}

/** Topics of one reader. */
export const MAX_TOPICS = 1_000;
const LIMITS = { entries: 200, bytes: 1024 * 1024 } as const;
const READ_EVERY_MS = 100;
const LISTS_AT_ONCE = 4;
/** A new definition's topic is followed within two seconds. */
const LIST_EVERY_MS = 1_500;
const AFTER_FAILURE_MS = 1_000;
const MAX_PAUSE_MS = 1_000;
/** Clocks of servers may differ, and be set back, so far without an event being missed by a reader that resumes. */
const MARGIN_MS = 5_000;

export function createStreamHub({ tail, listTopics, stopping, log }: StreamHubDeps): StreamHub {
  const members = new Set<StreamMember>();
  const followed = new Map<string, Followed>();
  /** Counts changes of what is followed: a reading in which one fell is not complete. */
  let generation = 0;
  let turn = 0;
  let timeMs = 0;
  let completeMs = 0;
  let listedMs = 0;
  let listedAt = Number.NEGATIVE_INFINITY;
  /** Counts members: a listing in which one came is not theirs. */
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
    // What has changed since it was begun is perhaps not in it.
    listedAt = startedAt;
  }

  function update(member: StreamMember, topics: ReadonlySet<string>): void {
    for (const topic of [...member.client.topics()]) if (!topics.has(topic)) unfollow(member, topic);
    for (const topic of topics) if (!member.client.has(topic)) follow(member, topic, timeMs - MARGIN_MS);
  }

  async function read(): Promise<boolean> {
    const before = generation;
    // Each time from another place: what fills a call must not be the same topics for ever.
    const all = [...followed];
    const first = all.length === 0 ? 0 : turn++ % all.length;
    const inTurn = new Map([...all.slice(first), ...all.slice(0, first)]);
    const places = [...inTurn].map(([topic, { after }]) => [topic, after] as const);
    const result = await tail.read(places, LIMITS, (topic, entry) => {
      const known = followed.get(topic);
      // Left meanwhile, and perhaps followed again, from a place before this one.
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
        // A slow reading is followed by a longer pause.
        const slowMs = Math.min(2 * (performance.now() - startedAt), MAX_PAUSE_MS);
        pauseMs = more ? 0 : Math.max(READ_EVERY_MS, slowMs);
        // Nobody waits for another's history; what fails is tried again in the next round.
        for (const { client } of members) client.catchUp().catch(() => {});
        await list();
        failing = false;
      } catch (error) {
        if (!failing) log.warn({ event: "event_streams.failing", err: error }, "event streams have to wait");
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
      // Of its topics nothing later has been read, and none that was made later is known.
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
