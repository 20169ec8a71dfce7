import type {
  DeliveryRecord,
  DeliveryStatus,
  RecordedItem,
  WholeDeliveryRecord,
} from "../../event/delivery-record.ts";
import { parseJson } from "../../event/parse-json.ts";
import { luaScript } from "../../lib/lua.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import type { RedisBus } from "../connection/redis.ts";
import { computeSlot, deliveryBytesKey, deliveryIndexKey, deliveryRecordKey } from "../keys.ts";
import { createNewestReader, type NewestQuery } from "../newest/newest-members.ts";
import { parseWithPlainKeys } from "../stored-delivery.ts";

export interface DeliveryRecordLimits {
  readonly records: number;
  readonly channelBytes: number;
  readonly organizationBytes: number;
  readonly keepMs: number;
}

const MIB = 1024 * 1024;

export const DELIVERY_RECORD_LIMITS: DeliveryRecordLimits = {
  records: 100,
  channelBytes: MIB,
  organizationBytes: 64 * MIB,
  keepMs: 24 * 3600 * 1000,
};

export type NewDeliveryRecord = WholeDeliveryRecord;

/** Fields of a delivery record that are used to filter and sort lists. */
export interface ListedDelivery {
  readonly id: string;
  readonly channelNumber: number;
  readonly receivedAtMs: number;
  readonly status: DeliveryStatus;
  readonly requestId: string | null;
}

export interface NewestDeliveriesQuery extends Omit<NewestQuery, "fields"> {
  readonly channelNumbers: readonly number[];
  readonly status?: DeliveryStatus | undefined;
  readonly requestId?: string | undefined;
}

export type DeliveryRecords = ReturnType<typeof createDeliveryRecords>;

/**
 * Lifetime in ms of the mark that a deletion leaves. While the mark exists, gateways drop buffered records of the deleted
 * deliveries.
 *
 * Must exceed the time in a gateway's buffer plus the time of the write.
 */
const GUARD_MS = 10_000;
const CONCURRENCY = 16;
/** Numbers of fields in a member of a channel's index (delivery-records.lua). */
const STATUS_FIELD = 3;
const REQUEST_FIELD = 4;

/** Stores the newest deliveries of each channel for inspection. Records expire after one day, and may be lost when Redis crashes. */
export function createDeliveryRecords({
  redis,
  limits = DELIVERY_RECORD_LIMITS,
}: {
  readonly redis: RedisBus;
  readonly limits?: DeliveryRecordLimits;
}) {
  const runWrite = luaScript(redis, new URL("./delivery-records-write.lua", import.meta.url));
  const runDrop = luaScript(redis, new URL("./delivery-records-drop.lua", import.meta.url));
  const runBytes = luaScript(redis, new URL("./delivery-records-bytes.lua", import.meta.url));
  const readNewest = createNewestReader({ redis });
  const { records, channelBytes, organizationBytes, keepMs } = limits;

  async function writeBatch(batch: readonly NewDeliveryRecord[]): Promise<number> {
    const keys = [...new Set(batch.map(({ record }) => deliveryBytesKey(record.organizationId)))];
    const args = batch.flatMap(({ record, items, body }) => [
      keys.indexOf(deliveryBytesKey(record.organizationId)) + 1,
      record.channelNumber,
      record.id,
      record.receivedAtMs,
      `${record.status} ${record.requestId ?? "-"}`,
      JSON.stringify(record),
      JSON.stringify(items),
      body?.toString("base64") ?? "",
    ]);
    return Number(await runWrite(keys, [records, channelBytes, organizationBytes, keepMs, ...args]));
  }

  return {
    /**
     * Stores the records that fit the limits and returns their number. Makes one script call, or one per slot in a Cluster.
     *
     * @throws UnavailableError
     */
    async write(batch: readonly NewDeliveryRecord[]): Promise<number> {
      const computeRecordSlot = ({ record }: NewDeliveryRecord) =>
        computeSlot(deliveryBytesKey(record.organizationId));
      const groups = redis.isCluster ? [...Map.groupBy(batch, computeRecordSlot).values()] : [batch];
      const written = await Promise.all(groups.filter(({ length }) => length > 0).map(writeBatch));
      return written.reduce((sum, count) => sum + count, 0);
    },
    /** Lists records sorted by arrival, then by id. `toMs` is exclusive. */
    async list(
      organizationId: string,
      channelNumbers: readonly number[],
      { fromMs, toMs }: { readonly fromMs?: number; readonly toMs?: number } = {},
    ): Promise<readonly ListedDelivery[]> {
      const range = [fromMs ?? "-inf", toMs === undefined ? "+inf" : `(${toMs}`];
      const pages = await mapBounded(channelNumbers, CONCURRENCY, async (channelNumber) => {
        const key = deliveryIndexKey(organizationId, channelNumber);
        const reply = (await redis.call("zrangebyscore", [key, ...range, "withscores"])) as string[];
        return parseListed(reply, channelNumber);
      });
      return pages.flat().sort((a, b) => a.receivedAtMs - b.receivedAtMs || (a.id < b.id ? -1 : 1));
    },
    /** Lists the newest records of many channels. Times are in ms. `total` counts the records on all pages. */
    async listNewest(
      organizationId: string,
      { channelNumbers, status, requestId, ...query }: NewestDeliveriesQuery,
    ): Promise<{ readonly records: readonly ListedDelivery[]; readonly total: number }> {
      // Most channels of a large organization have no records.
      const stored = (await redis.call("hkeys", [deliveryBytesKey(organizationId)])) as string[];
      const wanted = new Set(channelNumbers);
      const numberOf = new Map(
        stored
          .map(Number)
          .filter((number) => wanted.has(number))
          .map((number) => [deliveryIndexKey(organizationId, number), number]),
      );
      const fields = [
        ...(status === undefined ? [] : [[STATUS_FIELD, status] as const]),
        ...(requestId === undefined ? [] : [[REQUEST_FIELD, requestId] as const]),
      ];
      const { members, total } = await readNewest([...numberOf.keys()], { ...query, fields });
      const records = members.flatMap(({ key, member, score }) =>
        parseListed([member, String(score)], numberOf.get(key) ?? 0),
      );
      return { records, total };
    },
    /** Reads records in the order of `ids`. Expired records are left out. */
    async read(organizationId: string, ids: readonly string[]): Promise<readonly DeliveryRecord[]> {
      const texts = await mapBounded(ids, CONCURRENCY, (id) =>
        redis.call("hget", [deliveryRecordKey(organizationId, id), "m"]),
      );
      return texts.flatMap((text) =>
        typeof text === "string" ? [parseWithPlainKeys<DeliveryRecord>(text)] : [],
      );
    },
    async find(organizationId: string, id: string): Promise<WholeDeliveryRecord | undefined> {
      const fields = ["m", "i", "b"];
      const row = await redis.call("hmget", [deliveryRecordKey(organizationId, id), ...fields]);
      const [record, items, body] = row as (string | null)[];
      if (!record || !items) return undefined;
      const read = parseWithPlainKeys<DeliveryRecord>(record);
      return {
        record: read,
        items: parseJson(items) as RecordedItem[],
        body: read.hasBody ? Buffer.from(body ?? "", "base64") : null,
      };
    },
    /** Deletes the records with these ids. Gateways also drop all buffered records of the channel, even if `ids` is empty. */
    async delete(organizationId: string, channelNumber: number, ids: readonly string[]): Promise<void> {
      if (ids.length === 0)
        await redis.call("set", [guardKey(organizationId, channelNumber), "", "px", GUARD_MS]);
      else await runDrop([deliveryBytesKey(organizationId)], [channelNumber, GUARD_MS, ...ids]);
    },
    async purge(organizationId: string, channelNumber: number): Promise<void> {
      await runDrop([deliveryBytesKey(organizationId)], [channelNumber, GUARD_MS]);
    },
    async clear(organizationId: string): Promise<void> {
      const key = deliveryBytesKey(organizationId);
      for (const field of (await redis.call("hkeys", [key])) as string[])
        if (field !== "t") await runDrop([key], [field, GUARD_MS]);
    },
    readBytes: async (organizationId: string): Promise<number> =>
      Number(await runBytes([deliveryBytesKey(organizationId)], [])),
  };
}

const guardKey = (organizationId: string, channelNumber: number): string =>
  `${deliveryBytesKey(organizationId).slice(0, -1)}g:${channelNumber}`;

function parseListed(reply: readonly string[], channelNumber: number): readonly ListedDelivery[] {
  return reply.flatMap((member, at) => {
    if (at % 2 === 1) return [];
    const [id = "", , status = "", requestId = "-"] = member.split(" ");
    const receivedAtMs = Number(reply[at + 1]);
    return [
      {
        id,
        channelNumber,
        receivedAtMs,
        status: status as DeliveryStatus,
        requestId: requestId === "-" ? null : requestId,
      },
    ];
  });
}
