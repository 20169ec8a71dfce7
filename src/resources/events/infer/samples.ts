import { mergeNewest } from "../../../bus/topics/entry-merge.ts";
import { isJsonData } from "../../../event/cloud-event.ts";
import type { Definition } from "../../../event/definition.ts";
import type { Caller } from "../../../http/context.ts";
import type { CompiledChannel } from "../../../ingest/compile-channel.ts";
import { getCompiledChannel } from "../../apps/app-channel.ts";
import type { Deps } from "../../kit/deps.ts";
import { recordUse } from "../../kit/record-use.ts";
import type { Sample } from "./worker.ts";

/** Maximum size of the data and deliveries that one inference reads. */
export const MAX_SAMPLE_BYTES = 16 * 1024 * 1024;

export interface Samples {
  readonly byType: ReadonlyMap<string, readonly Sample[]>;
  /** Whether `MAX_SAMPLE_BYTES` ended the sample. */
  readonly isCut: boolean;
}

interface Wanted {
  readonly channelNumber: number;
  readonly definitions: readonly Definition[];
  /** Types by topic. */
  readonly topics: ReadonlyMap<string, string>;
  readonly limit: number;
  readonly from: "all" | "events" | "quarantine";
}

/** Reads the newest events of the topics, and the data that the newest quarantined items have without the schemas of the definitions. */
export async function readSamples(deps: Deps, caller: Caller, wanted: Wanted): Promise<Samples> {
  const collected = createCollection();
  if (wanted.from !== "quarantine") await addEvents(deps, wanted, collected);
  if (wanted.from !== "events") await addQuarantined(deps, caller, wanted, collected);
  const { byType, isCut } = collected;
  return { byType, isCut: isCut() };
}

type Collection = ReturnType<typeof createCollection>;

function createCollection() {
  const byType = new Map<string, Sample[]>();
  let left = MAX_SAMPLE_BYTES;
  let wasCut = false;
  return {
    byType,
    isCut: () => wasCut,
    /** Counts read bytes. Returns false if they exceed the bound. */
    take(bytes: number): boolean {
      if (bytes > left) wasCut = true;
      else left -= bytes;
      return !wasCut;
    },
    add(type: string, sample: Sample): void {
      const samples = byType.get(type);
      if (samples) samples.push(sample);
      else byType.set(type, [sample]);
    },
  };
}

async function addEvents({ entries }: Deps, { topics, limit }: Wanted, collected: Collection): Promise<void> {
  let read = 0;
  const places = mergeNewest(entries, [...topics.keys()], { from: "-", to: "+" });
  for await (const { topic, entry } of entries.read(places, { first: limit + 1 })) {
    if (read++ >= limit) return;
    const { data, datacontenttype } = entry?.fields ?? {};
    if (data === undefined) continue;
    if (!collected.take(Buffer.byteLength(data))) return;
    collected.add(topics.get(topic) ?? "", { text: data, isJson: isJsonText(datacontenttype) });
  }
}

async function addQuarantined(
  deps: Deps,
  caller: Caller,
  { channelNumber, definitions, topics, limit }: Wanted,
  collected: Collection,
): Promise<void> {
  const { organizationId } = caller;
  const filter = { organizationId, channelNumbers: [channelNumber], reason: "schema_mismatch" } as const;
  const { total } = await deps.quarantine.list(filter, { limit: 1, offset: 0 });
  const { records } = await deps.quarantine.list(filter, { limit, offset: Math.max(0, total - limit) });
  if (records.length === 0) return;
  const withoutSchemas = definitions.map(({ schema: _, ...definition }) => definition);
  const channel: CompiledChannel = await getCompiledChannel(deps, channelNumber, withoutSchemas);
  const ids = records.map(({ id }) => id).reverse();
  await recordUse(deps, caller, "read", "quarantinedItem", ids);
  for (const id of ids) {
    const found = await deps.quarantine.find(organizationId, id);
    if (!found) continue;
    const { record, delivery } = found;
    if (!collected.take(delivery.body.length)) return;
    const only = { id, item: record.item, definitions: record.definitions, asNewId: false };
    const redact = channel.sender.createRedactor(delivery);
    for (const { events } of await deps.explain(channel, delivery, only))
      for (const { topic, data, event } of events) {
        const type = topics.get(topic);
        if (type === undefined || data === null) continue;
        collected.add(type, { text: redact(data), isJson: isJsonText(event.datacontenttype), itemId: id });
      }
  }
}

const isJsonText = (contentType: unknown): boolean =>
  typeof contentType !== "string" || isJsonData(contentType);
