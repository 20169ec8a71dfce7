import { conflict, invalidParameters } from "../../../http/errors.ts";
import { withoutChannelIds } from "../../../lib/secrets/channel-id.ts";
import { redactTexts } from "../../../lib/secrets/redact.ts";
import { createWorkerQueue, type WorkerQueue } from "../../../lib/worker-queue.ts";
import { channelParams, getChannel } from "../../apps/app-channel.ts";
import { appScopeOf } from "../../apps/app-scope.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { MAX_SAMPLE_BYTES, readSamples } from "./samples.ts";
import { inferenceSchema, inferSchemaBody } from "./schema.ts";
import type { InferRequest, Inferred } from "./worker.ts";

const MAX_CPU_MS = 5_000;

/** Infers JSON Schemas for event definitions from the events and quarantined items of a channel. */
export const inferences: Resource = {
  tag: "Channels",
  params: channelParams,
  routes(deps) {
    let queue: WorkerQueue<InferRequest, Inferred> | undefined;

    /** Opens the worker queue. The thread starts with the first inference, and serves organizations round-robin. */
    function openQueue() {
      const opened = createWorkerQueue<InferRequest, Inferred>({
        program: new URL("./worker.ts", import.meta.url),
        name: "schema inference",
        maxCpuMs: MAX_CPU_MS,
        maxQueuedPerLane: 8,
        maxHeapMiB: 256,
      });
      deps.stopping.addEventListener("abort", () => void opened[Symbol.asyncDispose](), { once: true });
      return opened;
    }

    return [
      defineRoute({
        at: "POST /apps/:appId/channels/:channelId/definitions/infer",
        operation: "inferDefinitions",
        summary: "Infer schemas from events",
        description: `Infers a JSON Schema per event type from the newest events and quarantined items of the channel, and shows what fails the current schema. Reads at most ${MAX_SAMPLE_BYTES / 1024 / 1024} MiB, changes nothing, and adds the read quarantined items to the audit log. Types without events or items are omitted.`,
        permission: "deliveries.read",
        body: inferSchemaBody,
        answer: inferenceSchema,
        conflict: "the inference takes too long; set `type` or a smaller `sample`",
        async handle({ caller, params, body: { type, sample, from, enumValues } }) {
          const { db, keyring } = deps;
          const row = await getChannel(db, keyring, appScopeOf(caller, params), params.channelId);
          if (type !== undefined && !row.events.some((one) => one.type === type)) {
            const shown = row.events.slice(0, 10).map((one) => JSON.stringify(one.type));
            const message = `must be the type of a definition of the channel, such as ${shown.join(", ") || "one that you add first"}; got ${JSON.stringify(type)}`;
            throw invalidParameters([{ path: "type", message }]);
          }
          const active = await db
            .selectFrom("topics")
            .select(["topic", "type"])
            .where("channelNumber", "=", row.number)
            .where("organizationId", "=", caller.organizationId)
            .where("retiredAt", "is", null)
            .execute();
          const topics = new Map(
            active
              .filter((one) => type === undefined || one.type === type)
              .map((one) => [one.topic, one.type]),
          );
          const { byType, isCut } = await readSamples(deps, caller, {
            channelNumber: row.number,
            definitions: row.events,
            topics,
            limit: sample,
            from,
          });
          const types = [];
          for (const [inferredType, samples] of [...byType].sort(([a], [b]) => (a < b ? -1 : 1))) {
            const current = row.events.find((one) => one.type === inferredType)?.schema;
            queue ??= openQueue();
            const request = { samples, enumValues, current };
            const inferred = await queue.run(request, { lane: caller.organizationId, signal: deps.stopping });
            if (inferred.kind === "exceeded")
              throw conflict("The inference takes too long. Set `type`, or a smaller `sample`.");
            const { kind: _, ...result } = inferred;
            if (result.events + result.quarantined > 0) types.push({ type: inferredType, ...result });
          }
          return redactTexts({ isCut, types }, withoutChannelIds);
        },
      }),
    ];
  },
};
