import { z } from "zod";
import { conflict, invalidParameters } from "../../../http/errors.ts";
import { id } from "../../../http/fields.ts";
import type { Finding } from "../../../lib/errors.ts";
import { channelParams, getChannel } from "../../apps/app-channel.ts";
import { type AppScope, appScopeOf } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { recordUse } from "../../kit/record-use.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { redriveAll } from "./redrive.ts";
import { redriveResultSchema } from "./schema.ts";

const REASON = "window_passed";
const MAX_ITEMS = 200;

const recoverSchema = z.strictObject({
  ids: z
    .array(id("qr"))
    .min(1)
    .max(MAX_ITEMS)
    .optional()
    .meta({ description: "Ids of listed items, from the quarantine of the webhook channel. Default: all." }),
  limit: z
    .int()
    .min(1)
    .max(MAX_ITEMS)
    .default(MAX_ITEMS)
    .meta({ description: "Maximum number of items if `ids` is not set." }),
});

/** The route that publishes items which a source with `reconciles` has only listed. */
export const recoveries: Resource = {
  tag: "Sources",
  params: channelParams,
  routes: (deps) => [
    defineRoute({
      at: "POST /apps/:appId/channels/:channelId/source/recover",
      operation: "recoverSource",
      summary: "Publish items that a source has listed",
      description:
        "A source with `reconciles` lists an item instead of publishing it if the item is older than the dedupe window, because the webhook may have delivered it. This publishes the first `limit` of these items, oldest first, or those in `ids`. Returns one result per item.",
      body: recoverSchema,
      answer: z.array(redriveResultSchema),
      conflict: "the channel has no `reconciles`",
      async handle({ caller, params, body: { ids, limit }, c }) {
        const scope = appScopeOf(caller, params);
        const { config } = await getChannel(deps.db, deps.keyring, scope, params.channelId);
        if (typeof config.reconciles !== "string")
          throw conflict("The channel has no `reconciles`, so it lists no items.");
        const { number } = await getChannel(deps.db, deps.keyring, scope, config.reconciles);
        const chosen = ids ?? (await listIds(deps, scope, number, limit));
        if (ids !== undefined) await requireListed(deps, scope, number, ids);
        await recordUse(deps, caller, "redrive", "quarantinedItem", chosen);
        return redriveAll(deps, scope.organizationId, chosen, c.req.raw.signal);
      },
    }),
  ],
};

async function listIds(
  { quarantine }: Deps,
  { organizationId }: AppScope,
  channelNumber: number,
  limit: number,
): Promise<readonly string[]> {
  const filter = { organizationId, channelNumbers: [channelNumber], reason: REASON } as const;
  return (await quarantine.list(filter, { limit, offset: 0 })).records.map((record) => record.id);
}

/** @throws ApiError 400 for each id that is not a listed item of the channel */
async function requireListed(
  { quarantine }: Deps,
  { organizationId }: AppScope,
  channelNumber: number,
  ids: readonly string[],
): Promise<void> {
  const unknown: Finding[] = [];
  for (const [index, id] of ids.entries()) {
    const record = (await quarantine.find(organizationId, id))?.record;
    if (record?.channelNumber !== channelNumber || record.reason !== REASON)
      unknown.push({
        path: `ids[${index}]`,
        message: `must be the id of an item with the reason ${REASON} of the reconciled channel`,
      });
  }
  if (unknown.length > 0) throw invalidParameters(unknown);
}
