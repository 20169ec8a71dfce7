import calculateSlot from "cluster-key-slot";

/**
 * Every key that Inlet writes, its type and its end.
 *
 * | Key | Type | Holds | Ends |
 * |---|---|---|---|
 * | `<topic>` | stream | the events | by retention; deleted with its channel on request |
 * | `{<topic>}:e` | hash | `s<channel>` highest epoch of a pull source, `w<slicing>` slicings in use | with the topic |
 * | `{<topic>}:[<slicing>]<slice>[.<bucket>]` | hash | remembered ids (dedupe.lua) | a window after its slice |
 * | `inlet:{b.<channel>}:[<slicing>]<slice>[.<bucket>]` | hash | signed bytes that came (dedupe.lua) | a window after its slice |
 * | `inlet:{b.<channel>}:e` | hash | their slicings in use (dedupe.lua) | with its channel |
 * | `{<topic>}:t` | string | nothing: a write for WAIT to wait on (publish.lua) | after a second |
 * | `inlet:{c.<channel>}:cursor` | hash | `e` epoch, `v` version, `c` cursor of a pull source, and more (source-take-over.lua) | with its channel |
 * | `inlet:{c.<channel>}:source` | hash | what the source's state shows (source-state.lua) | with its channel |
 * | `inlet:{shards}:workers` | sorted set | workers that run sources, by the end of their lease | when none is left |
 * | `inlet:{shards}:owners` | hash | which worker has which shard of the sources (rebalance.lua) | when nobody has any |
 * | `inlet:{q.<organization>}:…` | | quarantine (quarantine-store.lua) | by age, budget, or with its channel |
 * | `inlet:{d.<organization>}:b` | hash | bytes of delivery records by channel, `t` in all (delivery-records.lua) | a day after the last record |
 * | `inlet:{d.<organization>}:x:<channel>` | sorted set | a channel's delivery records by arrival, with what is filtered by | a day after the last record, or with its channel |
 * | `inlet:{d.<organization>}:r:<record>` | hash | `m` a delivery record (JSON), `i` what its paths yielded (JSON), `b` its body in base64 | a day after it, or when newer ones need the room |
 * | `inlet:{d.<organization>}:g:<channel>` | string | nothing: records of the channel were deleted, gateways may hold some still | after ten seconds |
 * | `inlet:sub:<subscription>` | set | the topics of a subscription | with it |
 * | `inlet:sub:<subscription>:paused` | string | nothing: readers are to wait | when it is resumed, or with it |
 * | `inlet:sub:<subscription>:known` | string | nothing: the subscription stands, with or without topics | with it |
 * | `{<topic>}:dead:<subscription>` | stream | its readers' dead letters (consumer/dead-letter.lua) | 30 days after the last, or with its group |
 * | `inlet:{sub.<subscription>}:readers`, `:owners` | zset, hash | who reads which topic in order (consumer/rebalance.lua) | ten leases after the last renewal |
 * | `inlet:rate:<what>:<whose>` | string | how much of a rate limit was used (rate-count.lua) | with its window |
 * | `inlet:{jobs.<queue>}:…` | | a queue of jobs, laid out by BullMQ | jobs when they are over; schedulers with what they serve |
 * | `inlet:{slots}:<what>` | sorted set | who runs, by when that ends unless renewed (slots-take.lua) | when the last ends |
 * | `inlet:{slots}:<what>:w` | sorted set | who waits for it, by since when | ten minutes after the last came |
 * | `inlet:organizations:over-limit` | string | the organizations whose topics hold more than they may, a JSON array | some sweeps after the last that wrote it |
 *
 * Those of subscriptions are made in `event/subscription-keys.ts`: readers know them too.
 */
export const cursorKey = (channelNumber: number): string => `inlet:{c.${channelNumber}}:cursor`;
/** The beginning of all keys of a channel's memory of signed bytes. */
export const signedBytesKey = (channelNumber: number): string => `inlet:{b.${channelNumber}}:`;
/** The slicings in use there. */
export const signedBytesNotesKey = (channelNumber: number): string => `${signedBytesKey(channelNumber)}e`;
export const sourceStateKey = (channelNumber: number): string => `inlet:{c.${channelNumber}}:source`;
export const SHARD_KEYS = { workers: "inlet:{shards}:workers", owners: "inlet:{shards}:owners" } as const;
export const rateKey = (what: string, whose: string): string => `inlet:rate:${what}:${whose}`;
export const jobsPrefix = (queue: string): string => `inlet:{jobs.${queue}}`;
/** All in one slot of a Cluster: several are taken in one script. */
export const slotsKey = (what: string): string => `inlet:{slots}:${what}`;

const quarantinePrefix = (organizationId: string): string => `inlet:{q.${organizationId}}:`;
export const quarantineBudgetKey = (organizationId: string): string => `${quarantinePrefix(organizationId)}b`;
export const quarantineRecordKey = (organizationId: string, id: string): string =>
  `${quarantinePrefix(organizationId)}r:${id}`;
export const quarantineDeliveryKey = (organizationId: string, delivery: string): string =>
  `${quarantinePrefix(organizationId)}d:${delivery}`;

/** The bytes of an organization's delivery records; its other keys of these begin with it less its last letter. */
export const deliveryBytesKey = (organizationId: string): string => `inlet:{d.${organizationId}}:b`;
export const deliveryIndexKey = (organizationId: string, channelNumber: number): string =>
  `inlet:{d.${organizationId}}:x:${channelNumber}`;
export const deliveryRecordKey = (organizationId: string, id: string): string =>
  `inlet:{d.${organizationId}}:r:${id}`;

/** The Cluster slot of a key, 0 to 16,383. */
export const slotOf = (key: string): number => calculateSlot(key);

export const OVER_LIMIT_KEY = "inlet:organizations:over-limit";
