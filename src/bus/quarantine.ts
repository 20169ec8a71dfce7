import type { ChannelIdentity } from "../event/channel.ts";
import type { QuarantineReason } from "../event/outcome.ts";
import type { Publish } from "./publish.ts";
import type { QuarantinedItem, QuarantineRecord, QuarantineWrite } from "./quarantine-record.ts";
import type { RedisBus } from "./redis.ts";

export interface QuarantineFilter {
  readonly organizationId: string;
  /** The channels to look in. */
  readonly channelNumbers: readonly number[];
  readonly reason?: QuarantineReason;
  /** First arrival, inclusive. */
  readonly fromMs?: number;
  /** First arrival, exclusive. */
  readonly toMs?: number;
}

export interface QuarantineStore {
  /**
   * Keeps the failed items of a delivery; ids parallel to `items`.
   *
   * @throws UnavailableError when it is full or the outcome is unknown.
   */
  put(
    channel: ChannelIdentity,
    write: QuarantineWrite,
    options: { readonly signal: AbortSignal },
  ): Promise<readonly string[]>;
  /** In order of first arrival, then id. `total` counts all that fit the filter. */
  list(
    filter: QuarantineFilter,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<{ readonly records: readonly QuarantineRecord[]; readonly total: number }>;
  find(organizationId: string, id: string): Promise<QuarantinedItem | undefined>;
  /** True where it was there. */
  delete(organizationId: string, id: string): Promise<boolean>;
  /** Removes all of a channel. */
  purge(organizationId: string, channelNumber: number): Promise<void>;
  /** Removes what is older than its keep. */
  expire(organizationId: string): Promise<void>;
  /** Items of `no_match` that gave way to newer ones. */
  countDropped(organizationId: string, channelNumber: number): Promise<number>;
}

export interface QuarantineStoreDeps {
  readonly redis: RedisBus;
  readonly publish: Publish;
}

export declare function createQuarantineStore(deps: QuarantineStoreDeps): QuarantineStore;
