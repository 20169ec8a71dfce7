import calculateSlot from "cluster-key-slot";

/**
 * All Redis keys that Inlet writes, with their type, content and lifetime. `<channel>` is the internal channel id. "That of" a thing means
 * that the key is deleted together with it.
 *
 * | Key | Type | Content | Lifetime |
 * |---|---|---|---|
 * | `<topic>` | stream | events | retention; deleted with its channel on request |
 * | `{<topic>}:e` | hash | `s<channel>` highest epoch of a pull source, `w<slicing>` dedupe slicings in use | that of the topic |
 * | `{<topic>}:[<slicing>]<slice>[.<bucket>]` | hash | remembered event ids (dedupe.lua) | one dedupe window after the end of its slice |
 * | `inlet:{b.<channel>}:[<slicing>]<slice>[.<bucket>]` | hash | remembered signed bytes (dedupe.lua) | one dedupe window after the end of its slice |
 * | `inlet:{b.<channel>}:route:<bytes>` | string | hash of the route keys with which signed bytes arrived at an intake | one dedupe window |
 * | `inlet:{b.<channel>}:e` | hash | slicings in use for signed bytes (dedupe.lua) | that of its channel |
 * | `{<topic>}:t` | string | empty; written so that WAIT has a write to wait for (publish.lua) | one second |
 * | `inlet:{c.<channel>}:cursor` | hash | `e` epoch, `v` version, `c` cursor of a pull source, and more (source-take-over.lua) | that of its channel |
 * | `inlet:{c.<channel>}:source` | hash | visible state of a pull source (source-state.lua) | that of its channel |
 * | `inlet:{c.<channel>}:polls` | list | newest polls of a pull source, as JSON (source-state.lua) | that of its channel |
 * | `inlet:{w.<app>}:<uid>` | hash | `n` number of wakes of a pull source, `at` time of the last one (wake-count.lua) | 30 days after the last wake, or that of its channel |
 * | `inlet:{shards}:workers` | sorted set | workers that run sources, by the end of their lease | until it is empty |
 * | `inlet:{shards}:owners` | hash | worker of each shard of the sources (rebalance.lua) | until it is empty |
 * | `inlet:{q.<organization>}:…` | | quarantine (quarantine-store.lua) | age, budget, or that of the channel |
 * | `inlet:{d.<organization>}:b` | hash | bytes of delivery records by channel, `t` for the total (delivery-records.lua) | a day after the last record |
 * | `inlet:{d.<organization>}:x:<channel>` | sorted set | delivery records of a channel by arrival, with the filterable fields | a day after the last record, or that of the channel |
 * | `inlet:{d.<organization>}:r:<record>` | hash | `m` delivery record (JSON), `i` recorded items (JSON), `b` body in base64 | one day, or until newer records need the space |
 * | `inlet:{d.<organization>}:g:<channel>` | string | empty; guard: records were deleted, and gateways must not write buffered ones | ten seconds |
 * | `inlet:sub:<subscription>` | set | topics of a subscription | that of the subscription |
 * | `inlet:sub:<subscription>:paused` | string | empty; readers must wait | until it is resumed, or that of the subscription |
 * | `inlet:sub:<subscription>:known` | string | empty; the subscription exists, with or without topics | that of the subscription |
 * | `inlet:sub:<subscription>:error` | hash | last error of a reader's handler | seven days, or that of the subscription |
 * | `{<topic>}:dead:<subscription>` | stream | dead letters of its readers (consumer/dead-letter.lua) | 30 days after the last one, or that of its group |
 * | `inlet:{sub.<subscription>}:readers`, `:owners` | sorted set, hash | readers and their topics for ordered reading (consumer/rebalance.lua) | ten leases after the last renewal |
 * | `inlet:rate:<limit>:<key>` | string | counter of a rate limit (rate-count.lua) | that of its window |
 * | `inlet:{jobs.<queue>}:…` | | job queue, in BullMQ's layout | jobs until they end; schedulers until they are removed |
 * | `inlet:{jobs.<queue>}:t` | string | empty; written so that WAIT has a write to wait for (confirm-durability.ts) | one second |
 * | `inlet:{slots}:<semaphore>` | sorted set | slot holders by the end of their hold (slots-take.lua) | until the last hold ends |
 * | `inlet:{slots}:<semaphore>:w` | sorted set | waiting names by the time since which they wait | ten minutes after the last one was added |
 * | `inlet:{marker.<n>}` | hash | marker that reveals data loss: `id` as in the database, `at` time of the last check (redis-marker.lua); one, or 64 in a Cluster | unlimited |
 * | `inlet:organizations:over-limit` | string | organizations over their topic storage limit (JSON array) | several sweeps after the last write |
 *
 * `event/subscription-keys.ts` builds the keys of subscriptions, because readers use them too.
 */
export const cursorKey = (channelNumber: number): string => `inlet:{c.${channelNumber}}:cursor`;
/** Key prefix for fingerprints of signed deliveries, which reveal replays. */
export const signedBytesKey = (channelNumber: number): string => `inlet:{b.${channelNumber}}:`;
/** Key of a hash for finding the fingerprints of signed deliveries. It lists the lengths of time slices that the channel has used. */
export const signedBytesNotesKey = (channelNumber: number): string => `${signedBytesKey(channelNumber)}e`;
export const sourceStateKey = (channelNumber: number): string => `inlet:{c.${channelNumber}}:source`;
export const sourcePollsKey = (channelNumber: number): string => `inlet:{c.${channelNumber}}:polls`;
export const wakesKey = ({ appId, uid }: { readonly appId: string; readonly uid: string }): string =>
  `inlet:{w.${appId}}:${uid}`;
export const SHARD_KEYS = { workers: "inlet:{shards}:workers", owners: "inlet:{shards}:owners" } as const;
export const rateKey = (limit: string, key: string): string => `inlet:rate:${limit}:${key}`;
export const jobsPrefix = (queue: string): string => `inlet:{jobs.${queue}}`;
export const jobsMarkKey = (queue: string): string => `${jobsPrefix(queue)}:t`;
/** Returns the key of a semaphore. All semaphores share one Cluster slot, because one script takes several at once. */
export const slotsKey = (semaphore: string): string => `inlet:{slots}:${semaphore}`;

const quarantinePrefix = (organizationId: string): string => `inlet:{q.${organizationId}}:`;
export const quarantineBudgetKey = (organizationId: string): string => `${quarantinePrefix(organizationId)}b`;
export const routedBytesKey = (channelNumber: number, signedBytes: string): string =>
  `${signedBytesKey(channelNumber)}route:${signedBytes}`;
export const heldKey = (organizationId: string, channelNumber: number, hash: string): string =>
  `${quarantinePrefix(organizationId)}h:${channelNumber}:${hash}`;
export const quarantineIndexKey = (organizationId: string, channel: string, index: string): string =>
  `${quarantinePrefix(organizationId)}x:${channel}:${index}`;
export const quarantineRecordKey = (organizationId: string, id: string): string =>
  `${quarantinePrefix(organizationId)}r:${id}`;
export const quarantineDeliveryKey = (organizationId: string, delivery: string): string =>
  `${quarantinePrefix(organizationId)}d:${delivery}`;

/**
 * Key of the byte counts of an organization's delivery records. All other delivery record keys start with this key without its last
 * letter.
 */
export const deliveryBytesKey = (organizationId: string): string => `inlet:{d.${organizationId}}:b`;
export const deliveryIndexKey = (organizationId: string, channelNumber: number): string =>
  `inlet:{d.${organizationId}}:x:${channelNumber}`;
export const deliveryRecordKey = (organizationId: string, id: string): string =>
  `inlet:{d.${organizationId}}:r:${id}`;

/** Returns the Redis Cluster slot of a key, from 0 to 16,383. */
export const computeSlot = (key: string): number => calculateSlot(key);

export const OVER_LIMIT_KEY = "inlet:organizations:over-limit";
export const markerKey = (index: number): string => `inlet:{marker.${index}}`;
