import type {
  DeliveryRecord,
  DeliveryStatus,
  RecordedItem,
  WholeDeliveryRecord,
} from "../../event/delivery-record.ts";
import { luaScript } from "../../lib/lua.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import type { RedisBus } from "../connection/redis.ts";
import { deliveryBytesKey, deliveryIndexKey, deliveryRecordKey, slotOf } from "../keys.ts";

export interface DeliveryRecordLimits {
  /** Of a channel. */
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

/** A record to be kept. */
export type NewDeliveryRecord = WholeDeliveryRecord;

/** What a list goes by; the record itself is read by its id. */
export interface ListedDelivery {
  readonly id: string;
  readonly channelNumber: number;
  readonly receivedAtMs: number;
  readonly status: DeliveryStatus;
  readonly requestId: string | null;
}

export type DeliveryRecords = ReturnType<typeof createDeliveryRecords>;

/** Longer than a gateway holds a record before it writes it, and than that write takes. */
const GUARD_MS = 10_000;
const CONCURRENCY = 16;

/** The newest deliveries of each channel, for people to look at: a day, bounded, and less durable than events. */
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
  const { records, channelBytes, organizationBytes, keepMs } = limits;

  async function writeTogether(some: readonly NewDeliveryRecord[]): Promise<number> {
    const keys = [...new Set(some.map(({ record }) => deliveryBytesKey(record.organizationId)))];
    const args = some.flatMap(({ record, items, body }) => [
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
     * Keeps them as far as there is room; answers how many. One call, in a Cluster one per slot.
     *
     * @throws UnavailableError
     */
    async write(some: readonly NewDeliveryRecord[]): Promise<number> {
      const slotOfRecord = ({ record }: NewDeliveryRecord) => slotOf(deliveryBytesKey(record.organizationId));
      const groups = redis.isCluster ? [...Map.groupBy(some, slotOfRecord).values()] : [some];
      const written = await Promise.all(groups.filter(({ length }) => length > 0).map(writeTogether));
      return written.reduce((sum, count) => sum + count, 0);
    },
    /** In order of arrival, then id; times in ms, `toMs` exclusive. */
    async list(
      organizationId: string,
      channelNumbers: readonly number[],
      { fromMs, toMs }: { readonly fromMs?: number; readonly toMs?: number } = {},
    ): Promise<readonly ListedDelivery[]> {
      const range = [fromMs ?? "-inf", toMs === undefined ? "+inf" : `(${toMs}`];
      const pages = await mapBounded(channelNumbers, CONCURRENCY, async (channelNumber) => {
        const key = deliveryIndexKey(organizationId, channelNumber);
        const reply = (await redis.call("zrangebyscore", [key, ...range, "withscores"])) as string[];
        return listedOf(reply, channelNumber);
      });
      return pages.flat().sort((a, b) => a.receivedAtMs - b.receivedAtMs || (a.id < b.id ? -1 : 1));
    },
    /** In the order of the ids, without those that have ended. */
    async read(organizationId: string, ids: readonly string[]): Promise<readonly DeliveryRecord[]> {
      const texts = await mapBounded(ids, CONCURRENCY, (id) =>
        redis.call("hget", [deliveryRecordKey(organizationId, id), "m"]),
      );
      return texts.flatMap((text) => (typeof text === "string" ? [readRecord(text)] : []));
    },
    async find(organizationId: string, id: string): Promise<WholeDeliveryRecord | undefined> {
      const fields = ["m", "i", "b"];
      const row = await redis.call("hmget", [deliveryRecordKey(organizationId, id), ...fields]);
      const [record, items, body] = row as (string | null)[];
      if (!record || !items) return undefined;
      const read = readRecord(record);
      return {
        record: read,
        items: JSON.parse(items) as RecordedItem[],
        body: read.hasBody ? Buffer.from(body ?? "", "base64") : null,
      };
    },
    /** Removes these records of a channel, and what gateways hold of the channel and have not written. */
    async delete(organizationId: string, channelNumber: number, ids: readonly string[]): Promise<void> {
      if (ids.length === 0)
        await redis.call("set", [guardKey(organizationId, channelNumber), "", "px", GUARD_MS]);
      else await runDrop([deliveryBytesKey(organizationId)], [channelNumber, GUARD_MS, ...ids]);
    },
    /** Removes all of a channel. */
    async purge(organizationId: string, channelNumber: number): Promise<void> {
      await runDrop([deliveryBytesKey(organizationId)], [channelNumber, GUARD_MS]);
    },
    /** Removes all of an organization, to make room. */
    async clear(organizationId: string): Promise<void> {
      const key = deliveryBytesKey(organizationId);
      for (const field of (await redis.call("hkeys", [key])) as string[])
        if (field !== "t") await runDrop([key], [field, GUARD_MS]);
    },
    /** The bytes that an organization's records hold. */
    bytesOf: async (organizationId: string): Promise<number> =>
      Number(await runBytes([deliveryBytesKey(organizationId)], [])),
  };
}

const guardKey = (organizationId: string, channelNumber: number): string =>
  `${deliveryBytesKey(organizationId).slice(0, -1)}g:${channelNumber}`;

function listedOf(reply: readonly string[], channelNumber: number): readonly ListedDelivery[] {
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

/** Headers and query get back the prototype-less shape in which they arrived. */
function readRecord(text: string): DeliveryRecord {
  const { headers, query, ...rest } = JSON.parse(text) as DeliveryRecord;
  return {
    ...rest,
    headers: Object.assign(Object.create(null), headers),
    query: Object.assign(Object.create(null), query),
  };
}
