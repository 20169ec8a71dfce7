import type { GroupInfo } from "./groups.ts";
import type { RedisBus } from "./redis.ts";

/** One entry of a stream, as it stands there. */
export interface TopicEntry {
  readonly entryId: string;
  readonly fields: Readonly<Record<string, string>>;
}

export interface TopicInfo {
  readonly length: number;
  readonly firstEntryId: string | undefined;
  readonly lastEntryId: string | undefined;
  /** Estimated, as MEMORY USAGE does. */
  readonly bytes: number;
  readonly groups: readonly GroupInfo[];
}

export interface Topics {
  /** Undefined where there is no such stream. */
  find(topic: string): Promise<TopicInfo | undefined>;
  /** Entries by id, `from` and `to` inclusive (`-`, `+`, an id, or milliseconds); `(` before an id excludes it. */
  listEntries(
    topic: string,
    range: {
      readonly from: string;
      readonly to: string;
      readonly limit: number;
      readonly newestFirst?: boolean;
    },
  ): Promise<readonly TopicEntry[]>;
  findEntry(topic: string, entryId: string): Promise<TopicEntry | undefined>;
  /** True where it was there. */
  deleteEntry(topic: string, entryId: string): Promise<boolean>;
  /** Deletes the stream with its groups and companion keys. */
  delete(topic: string): Promise<void>;
}

export declare function createTopics(deps: { readonly redis: RedisBus }): Topics;
