import type { DeliveryRecords } from "../../bus/deliveries/delivery-records.ts";
import type { Queryable } from "../../data/database.ts";
import { nameChannels } from "../../data/problems/affected-objects.ts";
import type { Sighting } from "../../data/problems/problems.ts";
import { isJsonData } from "../../event/cloud-event.ts";
import { tryDefinitions } from "../../ingest/check-definitions.ts";
import type { CompiledChannel } from "../../ingest/compile-channel.ts";
import type { Explain } from "../../ingest/explain.ts";
import { toRecordedDelivery } from "../../ingest/recorded-delivery.ts";
import { UnavailableError } from "../../lib/errors.ts";
import type { SchemaCompiler } from "../../lib/json-schema/compiled-schema.ts";
import type { Drift } from "../../lib/json-schema/drift/find-drift.ts";
import type { DriftRequest, DriftResult } from "../../lib/json-schema/drift/worker.ts";
import { formatCount } from "../../lib/quantities.ts";
import { createWorkerQueue } from "../../lib/worker-queue.ts";
import type { Log } from "../../log.ts";
import { BOUNDS, levelOf } from "./bounds.ts";

export interface DriftWatchDeps {
  readonly db: Queryable;
  readonly deliveryRecords: Pick<DeliveryRecords, "list" | "find">;
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly explain: Explain;
  readonly schemas: Pick<SchemaCompiler, "check">;
  readonly log: Log;
}

/** Number of the newest recorded deliveries of a channel that are compared. */
const MAX_DELIVERIES = 50;
/** Maximum number of channels whose records one check lists, and of those that it compares. Later checks continue with the others. */
const LISTED_PER_CHECK = 500;
const COMPARED_PER_CHECK = 20;
const MAX_CPU_MS = 2_000;
/** Maximum number of differences that a problem names. */
const MAX_NAMED = 5;

interface TypedDrift extends Drift {
  readonly type: string;
}

interface WatchedChannel {
  readonly number: number;
  readonly organizationId: string;
  readonly version: number;
}

interface Compared {
  /** Version of the channel and id of its newest recorded delivery. */
  readonly basis: string;
  readonly drift: readonly TypedDrift[];
}

/**
 * Compares the recorded deliveries of channels with the schemas of their definitions. Deliveries are sampled, so a difference may be noticed
 * late. Results are kept in memory until the channel or its records change.
 */
export function createDriftWatch(deps: DriftWatchDeps) {
  const { log } = deps;
  const queue = createWorkerQueue<DriftRequest, DriftResult>({
    program: new URL("../../lib/json-schema/drift/worker.ts", import.meta.url),
    name: "schema drift",
    maxCpuMs: MAX_CPU_MS,
    maxQueuedPerLane: 1,
    maxHeapMiB: 128,
  });
  /** Results by internal channel id, least recently compared first. */
  const results = new Map<number, Compared>();

  async function compareChannel(channel: CompiledChannel, ids: readonly string[], signal: AbortSignal) {
    const { organizationId } = channel.identity;
    const { definitions } = channel.rules;
    const withoutSchemas = definitions.map(({ schema: _, ...definition }) => definition);
    const open = await tryDefinitions(deps.schemas, channel, withoutSchemas, signal);
    if (!open.ok) return [];
    const texts = new Map<string, string[]>();
    for (const id of ids) {
      const whole = await deps.deliveryRecords.find(organizationId, id);
      if (whole?.body == null) continue;
      const items = await deps.explain(open.value, toRecordedDelivery(whole));
      for (const { type, data, event } of items.flatMap((item) => item.events)) {
        const { datacontenttype: contentType } = event;
        const isJson = typeof contentType !== "string" || isJsonData(contentType);
        if (data !== null && isJson) texts.set(type, [...(texts.get(type) ?? []), data]);
      }
    }
    const drift: TypedDrift[] = [];
    for (const { type, schema } of definitions) {
      const ofType = texts.get(type);
      if (schema === undefined || ofType === undefined) continue;
      const result = await queue.run({ schema, texts: ofType }, { lane: organizationId, signal });
      if (result.kind === "compared") drift.push(...result.drift.map((one) => ({ ...one, type })));
      else
        log.debug(
          { event: "drift.too_costly", channel: channel.identity.number },
          "comparing events with their schema takes too long",
        );
    }
    return drift;
  }

  /** Returns whether the channel was compared, and not only looked up. */
  async function check({ number, ...watched }: WatchedChannel, signal: AbortSignal): Promise<boolean> {
    const before = results.get(number) ?? { basis: "", drift: [] };
    results.delete(number);
    results.set(number, before);
    const listed = await deps.deliveryRecords.list(watched.organizationId, [number]);
    const ids = listed.slice(-MAX_DELIVERIES).map(({ id }) => id);
    const basis = `${watched.version} ${ids.at(-1) ?? ""}`;
    if (before.basis === basis) return false;
    try {
      const channel = await deps.findCompiledChannel(number);
      if (channel) results.set(number, { basis, drift: await compareChannel(channel, ids, signal) });
    } catch (err) {
      if (!(err instanceof UnavailableError)) throw err;
      log.debug(
        { event: "drift.not_compared", channel: number, err },
        "the recorded deliveries of a channel were not compared with its schemas",
      );
    }
    return true;
  }

  return {
    /** Compares some channels, and returns the problems of all channels compared so far. @throws UnavailableError */
    async find(signal: AbortSignal): Promise<readonly Sighting[]> {
      const rows = await deps.db
        .selectFrom("channels")
        .select(["number", "organizationId", "version"])
        .where("number", "in", (eb) =>
          eb
            .selectFrom("topics")
            .select("channelNumber")
            .where("schemaVersion", "is not", null)
            .where("retiredAt", "is", null),
        )
        .execute();
      const watched = new Map(rows.map((row) => [row.number, row]));
      for (const number of results.keys()) if (!watched.has(number)) results.delete(number);
      const unseen = [...watched.keys()].filter((number) => !results.has(number));
      let left = COMPARED_PER_CHECK;
      for (const number of [...unseen, ...results.keys()].slice(0, LISTED_PER_CHECK)) {
        signal.throwIfAborted();
        const channel = watched.get(number);
        if (channel && (await check(channel, signal)) && --left === 0) break;
      }
      return describe(deps.db, results);
    },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

async function describe(db: Queryable, results: ReadonlyMap<number, Compared>): Promise<readonly Sighting[]> {
  const drifted = [...results].filter(([, { drift }]) => drift.some(({ grade }) => grade !== "info"));
  const names = await nameChannels(
    db,
    drifted.map(([number]) => number),
  );
  return drifted.flatMap(([number, { drift }]) => {
    const named = names.get(number);
    const grave = drift.filter(({ grade }) => grade !== "info");
    const level = levelOf(Math.max(...grave.map(({ count }) => count)), BOUNDS.driftedEvents);
    if (named === undefined || level === undefined) return [];
    const isBreaking = grave.some(({ grade }) => grade === "breaking");
    const countOf = (wanted: Drift["grade"]): number => drift.filter(({ grade }) => grade === wanted).length;
    return [
      {
        ...named,
        kind: "schema_drift",
        level,
        severity: isBreaking ? "error" : "warning",
        figures: { breaking: countOf("breaking"), warning: countOf("warning"), info: countOf("info") },
        message: `Recent deliveries differ from the channel's schemas: ${listShown(grave)}.`,
        suggestedAction:
          "Compare the events with the schema: `inlet infer` and `POST …/definitions/infer` list the differences. Then change the schema or the sender, and redrive quarantined items.",
      },
    ];
  });
}

/** Lists the most frequent differences, for example `type_changed at /total in 12 events of order.created`. */
function listShown(drift: readonly TypedDrift[]): string {
  const shown = drift
    .slice(0, MAX_NAMED)
    .map(
      ({ kind, path, count, type }) =>
        `${kind} at ${path || "the root"} in ${formatCount(count, "event")} of ${type}`,
    );
  const others = drift.length - shown.length;
  return others > 0 ? `${shown.join(", ")}, and ${others} more` : shown.join(", ");
}
