import type { RedisBus } from "./redis.ts";

/** A consumer group as XINFO tells it. */
export interface GroupInfo {
  readonly name: string;
  readonly consumers: number;
  readonly pending: number;
  readonly lastDeliveredId: string;
  /** Entries not yet delivered; undefined where Redis cannot tell. */
  readonly lag: number | undefined;
}

export interface Groups {
  /** Makes the group where it is missing, and the stream with it; true when made. Leaves an existing one alone. */
  ensure(topic: string, group: string, startId: string): Promise<boolean>;
  /** Sets the group anew; answers how many pending entries were dropped. */
  reset(topic: string, group: string, startId: string): Promise<number>;
  /** True where it was there. */
  remove(topic: string, group: string): Promise<boolean>;
  list(topic: string): Promise<readonly GroupInfo[]>;
  find(topic: string, group: string): Promise<GroupInfo | undefined>;
  /** The set at `inlet:sub:<id>` by which readers find the topics of a subscription. */
  setTopics(subscriptionId: string, topics: readonly string[]): Promise<void>;
  removeTopics(subscriptionId: string): Promise<void>;
}

/** The id just before every entry of `startMs`: an entry with exactly the id of a group is never delivered to it. */
export declare function startIdAt(startMs: number): string;

/** Redis time. */
export declare function readRedisTimeMs(redis: RedisBus): Promise<number>;

export declare function createGroups(deps: { readonly redis: RedisBus }): Groups;
