import { isJsonData } from "../../../event/cloud-event.ts";
import type { DeliveryRecord } from "../../../event/delivery-record.ts";
import { parseExactly } from "../../../event/exact-json.ts";
import type { ExplainedEvent } from "../../../event/explained.ts";
import type { VerifiedDelivery } from "../../../event/received.ts";
import type { Caller } from "../../../http/context.ts";
import type { CompiledChannel } from "../../../ingest/compile-channel.ts";
import { toRecordedDelivery } from "../../../ingest/recorded-delivery.ts";
import { redactTexts } from "../../../lib/secrets/redact.ts";
import { skipVerification, toRawRequest } from "../../apps/given-delivery.ts";
import type { Deps } from "../../kit/deps.ts";
import { recordUse } from "../../kit/record-use.ts";
import type { EventType } from "./event-types.ts";
import { type CatalogEntry, MAX_EXAMPLE_CHARACTERS } from "./schema.ts";

/** Example of an event's data. */
export type Example = Pick<CatalogEntry, "example" | "exampleSource">;

export const NO_EXAMPLE: Example = { example: null, exampleSource: null };

/** Number of each channel's newest delivery records in which examples are searched. */
const RECORDS_PER_CHANNEL = 20;
/** Maximum number of deliveries that are processed for the examples of one response. */
const MAX_DELIVERIES = 50;

/**
 * Finds an example for each event type, by topic: in the channel's newest stored deliveries, or else in the sample of its preset. Adds the
 * read deliveries to the audit log.
 * @throws UnavailableError
 */
export async function findExamples(
  deps: Deps,
  caller: Caller,
  types: readonly EventType[],
): Promise<ReadonlyMap<string, Example>> {
  const found = new Map<string, Example>();
  let left = MAX_DELIVERIES;
  for (const [number, wanted] of Map.groupBy(types, ({ channelNumber }) => channelNumber)) {
    if (left <= 0) break;
    const channel = await deps.findCompiledChannel(number);
    if (channel === undefined) continue;
    const isMissing = ({ topic }: Pick<EventType, "topic">): boolean => !found.has(topic);
    const topics = new Set(wanted.map(({ topic }) => topic));
    const add = async (delivery: VerifiedDelivery, exampleSource: "delivery" | "preset"): Promise<void> => {
      left--;
      for (const [topic, example] of await dataByTopic(deps, channel, delivery))
        if (topics.has(topic) && !found.has(topic)) found.set(topic, { example, exampleSource });
    };
    const records = await listRecords(deps, caller.organizationId, number);
    for (const record of records) {
      if (left <= 0 || !wanted.some(isMissing)) break;
      if (!record.outcome.events.some((event) => topics.has(event.topic) && isMissing(event))) continue;
      const whole = await deps.deliveryRecords.find(caller.organizationId, record.id);
      if (whole?.body == null) continue;
      await recordUse(deps, caller, "read", "delivery", [record.id]);
      await add(toRecordedDelivery(whole), "delivery");
    }
    const sample = wanted.some(isMissing) ? sampleDelivery(deps, channel) : undefined;
    if (sample !== undefined && left > 0) await add(sample, "preset");
  }
  return found;
}

/** Returns the newest records that have a body, newest first. */
async function listRecords(
  { deliveryRecords }: Deps,
  organizationId: string,
  channelNumber: number,
): Promise<readonly DeliveryRecord[]> {
  const listed = await deliveryRecords.list(organizationId, [channelNumber]);
  const ids = listed.slice(-RECORDS_PER_CHANNEL).map(({ id }) => id);
  const records = await deliveryRecords.read(organizationId, ids.reverse());
  return records.filter(({ hasBody }) => hasBody);
}

function sampleDelivery({ presets, clock }: Deps, channel: CompiledChannel): VerifiedDelivery | undefined {
  const sample = presets.get(channel.verification?.preset ?? "")?.sample;
  if (sample === undefined) return undefined;
  const { headers, body } = sample;
  const query = new URLSearchParams(sample.query).toString();
  return skipVerification(
    channel,
    toRawRequest({ method: "POST", headers, query, body, bodyEncoding: "utf-8" }, clock()),
  );
}

async function dataByTopic(
  { explain }: Deps,
  channel: CompiledChannel,
  delivery: VerifiedDelivery,
): Promise<ReadonlyMap<string, unknown>> {
  const redact = channel.sender.createRedactor(delivery);
  const items = await explain(channel, delivery);
  const events = items.flatMap((item) => item.events);
  const shown = events.filter(({ data }) => data !== null && data.length <= MAX_EXAMPLE_CHARACTERS);
  return new Map(shown.map((event) => [event.topic, redactTexts(parseData(event), redact)]));
}

const parseData = ({ data, event }: ExplainedEvent): unknown => {
  const { datacontenttype } = event;
  const isJson = typeof datacontenttype !== "string" || isJsonData(datacontenttype);
  return isJson && data !== null ? parseExactly(data) : data;
};
