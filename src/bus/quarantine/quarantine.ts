import type { ChannelIdentity } from "../../event/channel.ts";
import { QUARANTINE_REASONS, type QuarantineReason } from "../../event/outcome.ts";
import { parseJson } from "../../event/parse-json.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import {
  heldKey,
  quarantineBudgetKey,
  quarantineDeliveryKey,
  quarantineIndexKey,
  quarantineRecordKey,
} from "../keys.ts";
import { createNewestReader, type NewestQuery } from "../newest/newest-members.ts";
import type { Publish, PublishOptions } from "../publish/publish.ts";
import type { PublishBatch } from "../publish/publish-batch.ts";
import { parseWithPlainKeys } from "../stored-delivery.ts";
import {
  hashRouteKey,
  QUARANTINE_LIMITS,
  type QuarantinedItem,
  type QuarantineLimits,
  type QuarantineRecord,
  type QuarantineWrite,
} from "./quarantine-record.ts";

export interface QuarantineFilter {
  readonly organizationId: string;
  readonly channelNumbers: readonly number[];
  readonly reason?: QuarantineReason;
  /** Lower bound of the first arrival, inclusive. */
  readonly fromMs?: number;
  /** Upper bound of the first arrival, exclusive. */
  readonly toMs?: number;
}

export interface NewestItemsQuery extends Omit<NewestQuery, "fields"> {
  readonly channelNumbers: readonly number[];
  readonly reason?: QuarantineReason | undefined;
}

export interface QuarantineUsage {
  readonly totalBytes: number;
  readonly limitBytes: number;
  /** Bytes of quarantined items that are stored for days, by internal channel id. */
  readonly keptBytes: ReadonlyMap<number, number>;
}

type HeldPlace = Pick<ChannelIdentity, "number" | "organizationId">;

const toHeldKey = ({ organizationId, number }: HeldPlace, routeKey: string): string =>
  heldKey(organizationId, number, hashRouteKey(routeKey));

export type QuarantineStore = ReturnType<typeof createQuarantineStore>;

/** Maximum number of records that one script call deletes, so that the call blocks Redis only briefly. */
const RECORDS_AT_ONCE = 200;
/** Maximum number of indexes that one script call counts, for the same reason. */
const INDEXES_AT_ONCE = 1_000;
/** Age that matches all records. It is negative, so that records with a future date from a wrong clock match too. */
const EVERY_AGE_MS = -1_000_000_000_000;
const NO_DEDUPE_POLICY = { dedupeWindowMs: 0, conflict: "report", maxEntries: 1 } as const;
/** Names of all record indexes. Each reason has two: records stored for days, and (`:last`) only the newest records. */
const INDEXES = QUARANTINE_REASONS.flatMap((reason) => [reason, `${reason}:last`]);
/** Reasons of items that really failed. Items with the reason `paused` only wait for the end of a pause. */
const FAILURE_REASONS = QUARANTINE_REASONS.filter((reason) => reason !== "paused");

/** Returns the indexes of the records whose bytes are charged to an account. `name` is the part after the channel. */
const indexesOf = (name: string): readonly string[] =>
  name === "a" ? QUARANTINE_REASONS : QUARANTINE_REASONS.some((one) => one === name) ? [`${name}:last`] : [];

/** Stores items that could not be published. They are in the same Redis as events and are as durable. */
export function createQuarantineStore({
  redis,
  publish,
  limits,
  getLimitBytes: bytesOf,
}: {
  readonly redis: RedisBus;
  readonly publish: Publish;
  readonly limits?: QuarantineLimits;
  /** Returns the limit of an organization in bytes. `undefined` means the limit in `limits`. */
  readonly getLimitBytes?: (organizationId: string) => number | undefined;
}) {
  const { keepMs, organizationBytes } = limits ?? QUARANTINE_LIMITS;
  const limitOf = (organizationId: string): number => bytesOf?.(organizationId) ?? organizationBytes;
  const runList = luaScript(redis, new URL("./quarantine-list.lua", import.meta.url));
  const readNewest = createNewestReader({ redis });
  const runCount = luaScript(redis, new URL("./quarantine-count.lua", import.meta.url));
  const runDrop = luaScript(redis, new URL("./quarantine-drop.lua", import.meta.url));
  const runExpire = luaScript(redis, new URL("./quarantine-expire.lua", import.meta.url));

  /** Reads a record, and the part of its delivery's key after the organization. */
  async function readRecord(organizationId: string, id: string) {
    const fields = ["s", "n", "f", "l", "d"];
    const row = await redis.call("hmget", [quarantineRecordKey(organizationId, id), ...fields]);
    const [shape, count, firstAtMs, lastAtMs, delivery] = row as (string | null)[];
    if (typeof shape !== "string" || typeof delivery !== "string") return undefined;
    const fixed = parseJson(shape) as Omit<QuarantineRecord, "id" | "count" | "firstAtMs" | "lastAtMs">;
    const times = { count: Number(count), firstAtMs: Number(firstAtMs), lastAtMs: Number(lastAtMs) };
    const record: QuarantineRecord = { id, ...fixed, ...times };
    return { record, delivery };
  }

  /** Lists the indexes of these channels that may have records. */
  async function listIndexes(organizationId: string, channelNumbers: readonly number[]) {
    const accounts = (await redis.call("hkeys", [quarantineBudgetKey(organizationId)])) as string[];
    const wanted = new Set(channelNumbers);
    return accounts.flatMap((account) => {
      const [number = "", name = ""] = account.split(":");
      if (!wanted.has(Number(number))) return [];
      return indexesOf(name).map((index) => ({
        channelNumber: Number(number),
        index,
        key: quarantineIndexKey(organizationId, number, index),
      }));
    });
  }

  async function removeOlder(
    organizationId: string,
    channels: readonly string[],
    ageMs: number,
    indexes: readonly string[],
  ) {
    const key = quarantineBudgetKey(organizationId);
    for (const channel of channels) {
      const args = [channel, ageMs, RECORDS_AT_ONCE, indexes.join(" ")];
      while (Number(await runExpire([key], args)) >= RECORDS_AT_ONCE);
    }
  }

  return {
    /**
     * Stores the failed items of a delivery and returns one record id for each item, in the same order.
     *
     * For a pull source, the same call stores its position. The last step deletes the records in `release`.
     *
     * @throws UnavailableError if the quarantine is full or the outcome is unknown
     */
    async put(
      channel: ChannelIdentity,
      quarantine: QuarantineWrite,
      { position, release, ...options }: PublishOptions & Pick<PublishBatch, "position" | "release">,
    ): Promise<readonly string[]> {
      const batch = { channel, events: [], policy: NO_DEDUPE_POLICY, quarantine, release };
      return (await publish({ ...batch, ...(position && { position }) }, options)).quarantineIds;
    },
    /** Lists records by first arrival, then by id. `total` counts all records that match the filter. */
    async list(
      { organizationId, channelNumbers, reason, fromMs, toMs }: QuarantineFilter,
      { limit, offset }: { readonly limit: number; readonly offset: number },
    ) {
      const reasons = reason === undefined ? INDEXES : [reason, `${reason}:last`];
      const from = fromMs === undefined ? "-inf" : fromMs * 1000;
      const to = toMs === undefined ? "+inf" : `(${toMs * 1000}`;
      const args = [from, to, offset, limit, reasons.join(" "), ...channelNumbers];
      const reply = await runList([quarantineBudgetKey(organizationId)], args);
      const [total, ...ids] = reply as [number, ...string[]];
      const rows = await Promise.all(ids.map((id) => readRecord(organizationId, id)));
      return { records: rows.flatMap((row) => row?.record ?? []), total };
    },
    /**
     * Lists the newest records of many channels, by first arrival in µs. `last` is the position of the last record of the page if another
     * page follows, also if the record was deleted in the meantime. `total` counts the records on all pages.
     */
    async listNewest(organizationId: string, { channelNumbers, reason, ...query }: NewestItemsQuery) {
      const keys = (await listIndexes(organizationId, channelNumbers))
        .filter(({ index }) => reason === undefined || index === reason || index === `${reason}:last`)
        .map(({ key }) => key);
      // One more than the page shows whether another page follows.
      const { members: found, total } = await readNewest(keys, { ...query, limit: query.limit + 1 });
      const members = found.slice(0, query.limit);
      const rows = await Promise.all(members.map(({ member }) => readRecord(organizationId, member)));
      const last = found.length > query.limit ? members.at(-1) : undefined;
      return {
        records: rows.flatMap((row) => row?.record ?? []),
        last: last && { score: last.score, id: last.member },
        total,
      };
    },
    /** Counts the records of each of these channels. Channels without records are left out. */
    async countByChannel(
      organizationId: string,
      channelNumbers: readonly number[],
    ): Promise<ReadonlyMap<number, number>> {
      const indexes = await listIndexes(organizationId, channelNumbers);
      const counts = new Map<number, number>();
      for (let at = 0; at < indexes.length; at += INDEXES_AT_ONCE) {
        const part = indexes.slice(at, at + INDEXES_AT_ONCE);
        const keys = part.map(({ key }) => key);
        const held = (await runCount(keys, [])) as readonly number[];
        for (const [n, { channelNumber }] of part.entries()) {
          const count = (counts.get(channelNumber) ?? 0) + (held[n] ?? 0);
          if (count > 0) counts.set(channelNumber, count);
        }
      }
      return counts;
    },
    async find(organizationId: string, id: string): Promise<QuarantinedItem | undefined> {
      const row = await readRecord(organizationId, id);
      if (row === undefined) return undefined;
      const key = quarantineDeliveryKey(organizationId, row.delivery);
      const [meta, body] = (await redis.callBuffer("hmget", [key, "m", "b"])) as (Buffer | null)[];
      // The record was deleted or has expired after `readRecord` returned.
      if (!meta || !body) return undefined;
      return {
        record: row.record,
        delivery: { ...parseWithPlainKeys<Omit<VerifiedDelivery, "body">>(meta.toString()), body },
      };
    },
    /** Returns whether an intake holds items for a route key. */
    async hasHeld(intake: HeldPlace, routeKey: string): Promise<boolean> {
      return Number(await redis.call("exists", [toHeldKey(intake, routeKey)])) > 0;
    },
    /** Returns the ids of the oldest records that an intake holds for a route key, in order of arrival. */
    async listHeld(intake: HeldPlace, routeKey: string, limit: number): Promise<readonly string[]> {
      return (await redis.call("zrange", [toHeldKey(intake, routeKey), 0, limit - 1])) as string[];
    },
    /** Returns true if the record existed. */
    async delete(organizationId: string, id: string): Promise<boolean> {
      return (await runDrop([quarantineBudgetKey(organizationId)], [id])) === 1;
    },
    async purge(organizationId: string, channelNumber: number): Promise<void> {
      await removeOlder(organizationId, [String(channelNumber)], EVERY_AGE_MS, INDEXES);
      const pauses = [`${channelNumber}:over`, `${channelNumber}:closes`];
      await redis.call("hdel", [quarantineBudgetKey(organizationId), ...pauses]);
    },
    async expire(organizationId: string): Promise<void> {
      const accounts = (await redis.call("hkeys", [quarantineBudgetKey(organizationId)])) as string[];
      const channels = accounts.filter((name) => name.endsWith(":a")).map((name) => name.slice(0, -2));
      await removeOlder(organizationId, channels, keepMs, QUARANTINE_REASONS);
    },
    /** Like `usage`, but without the bytes per channel. */
    async readUsage(organizationId: string) {
      const bytes = await redis.call("hget", [quarantineBudgetKey(organizationId), "t"]);
      return { bytes: Number(bytes ?? 0), limit: limitOf(organizationId) };
    },
    async usage(organizationId: string): Promise<QuarantineUsage> {
      const reply = await redis.call("hgetall", [quarantineBudgetKey(organizationId)]);
      const accounts = Object.entries(reply as Readonly<Record<string, string>>);
      const kept = accounts.flatMap(([name, bytes]) =>
        name.endsWith(":a") ? [[Number(name.slice(0, -2)), Number(bytes)] as const] : [],
      );
      const [, total = 0] = accounts.find(([name]) => name === "t") ?? [];
      const limitBytes = limitOf(organizationId);
      return { totalBytes: Number(total), limitBytes, keptBytes: new Map(kept) };
    },
    /**
     * Counts items of a channel that have failed since `sinceMs` and are stored for days. Items that wait for the end of a pause
     * are not counted.
     */
    async countKept(organizationId: string, channelNumber: number, sinceMs: number): Promise<number> {
      const args = [sinceMs * 1000, "+inf", 0, 0, FAILURE_REASONS.join(" "), channelNumber];
      const [total] = (await runList([quarantineBudgetKey(organizationId)], args)) as [number];
      return total;
    },
  };
}
