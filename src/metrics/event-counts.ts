/** Counts of the event path since they were last taken. They feed both the metrics and the series in PostgreSQL. */
import { LATENCY_BUCKETS, toLatencyBucket } from "./latency-buckets.ts";

export interface CountedChannel {
  readonly number: number;
  readonly uid: string;
  readonly appId: string;
  readonly organizationId: string;
}

/** Counts of a channel. The event path increments them directly. */
export interface EventCounts {
  readonly channel: CountedChannel;
  /** Deliveries, by result. */
  accepted: number;
  handshake: number;
  unverified: number;
  refused: number;
  failed: number;
  /** Items of accepted deliveries, and requests that were rejected as a whole. */
  received: number;
  /** Items that no definition published because of its `when`, or that matched none with `onNoMatch: ignore`. */
  ignored: number;
  /** Events by type. */
  readonly types: Map<string, TypeCounts>;
  /** Quarantined items by reason. */
  readonly quarantined: Map<string, number>;
  /** Rejected requests by HTTP status. */
  readonly rejected: Map<number, number>;
  /** Response times by bucket. `undefined` if none was observed. */
  latency: Uint32Array | undefined;
}

export interface TypeCounts {
  published: number;
  /** Events that the channel missed and a poll found. */
  recovered: number;
  duplicate: number;
}

/** Identifies the events of one topic in requests to handlers. */
export interface HandledTopic {
  readonly topic: string;
  readonly organizationId: string;
  readonly appId: string;
  readonly channelUid: string;
  readonly type: string;
}

/** Events in requests to handlers, by the result of the request. */
export interface HandlerCounts extends HandledTopic {
  succeeded: number;
  failed: number;
}

export interface TakenCounts {
  readonly channels: readonly EventCounts[];
  readonly handlers: readonly HandlerCounts[];
}

/** Maximum number of channels, and of handled topics, with counts. When it is reached, all counts are taken early. */
const MAX_COUNTED = 20_000;

/** @param onTaken called with all counts since the last call */
export function createEventCounts(onTaken: (taken: TakenCounts) => void) {
  let channels = new Map<number, EventCounts>();
  let handlers = new Map<string, HandlerCounts>();

  function take(): void {
    if (channels.size + handlers.size === 0) return;
    const taken = { channels: [...channels.values()], handlers: [...handlers.values()] };
    channels = new Map();
    handlers = new Map();
    onTaken(taken);
  }

  function addChannel(channel: CountedChannel): EventCounts {
    if (channels.size >= MAX_COUNTED) take();
    const counts = createCounts(channel);
    channels.set(channel.number, counts);
    return counts;
  }

  function addHandled(topic: HandledTopic): HandlerCounts {
    if (handlers.size >= MAX_COUNTED) take();
    const counts = { ...topic, succeeded: 0, failed: 0 };
    handlers.set(topic.topic, counts);
    return counts;
  }

  return {
    /** Returns the counts of a channel, which the caller increments in the same tick. Later, they may already have been taken. */
    countsOf: (channel: CountedChannel): EventCounts => channels.get(channel.number) ?? addChannel(channel),
    /** Returns the counts of a topic's events in requests to handlers. `describe` is called for the first event of the topic. */
    handlerCountsOf: (topic: string, describe: () => HandledTopic): HandlerCounts =>
      handlers.get(topic) ?? addHandled(describe()),
    /** Passes all counts to `onTaken`, and starts again at 0. */
    take,
  };
}

export function countType({ types }: EventCounts, type: string): TypeCounts {
  let counts = types.get(type);
  if (counts === undefined) {
    counts = { published: 0, recovered: 0, duplicate: 0 };
    types.set(type, counts);
  }
  return counts;
}

/** Counts a request that was rejected as a whole. */
export function countRejection(counts: EventCounts, status: number): void {
  counts.received++;
  counts.rejected.set(status, (counts.rejected.get(status) ?? 0) + 1);
}

export const countQuarantined = ({ quarantined }: EventCounts, reason: string, items = 1): void =>
  void quarantined.set(reason, (quarantined.get(reason) ?? 0) + items);

export function countLatency(counts: EventCounts, ms: number): void {
  counts.latency ??= new Uint32Array(LATENCY_BUCKETS);
  const bucket = toLatencyBucket(ms);
  counts.latency[bucket] = (counts.latency[bucket] ?? 0) + 1;
}

const createCounts = ({ number, uid, appId, organizationId }: CountedChannel): EventCounts => ({
  channel: { number, uid, appId, organizationId },
  accepted: 0,
  handshake: 0,
  unverified: 0,
  refused: 0,
  failed: 0,
  received: 0,
  ignored: 0,
  types: new Map(),
  quarantined: new Map(),
  rejected: new Map(),
  latency: undefined,
});
