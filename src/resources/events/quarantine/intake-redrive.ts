import { z } from "zod";
import type { QuarantinedItem } from "../../../bus/quarantine/quarantine-record.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import { QUARANTINE_REASONS, type QuarantineReason } from "../../../event/outcome.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict } from "../../../http/errors.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { getIntake } from "../../apps/intake-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { quarantineReceipts } from "../../kit/receipts.ts";
import { recordUse } from "../../kit/record-use.ts";
import { defineRoute, type Route } from "../../kit/route.ts";
import { createRejectedResult, filters, redriveManySchema, redriveResultSchema } from "./schema.ts";

/** Why an item with this reason cannot be redriven. */
const REFUSED: Readonly<Partial<Record<QuarantineReason, string>>> = {
  signature_invalid: "The delivery has an invalid signature and can never be redriven.",
  paused: "Inlet routes the item when the intake is resumed.",
};

const redriveAllSchema = z.strictObject({
  reason: z
    .enum(QUARANTINE_REASONS)
    .describe("Selects items with this reason. Redrive `replayed` only if the route keys were wrong before."),
  from: filters.from,
  to: filters.to,
  limit: redriveManySchema.shape.limit,
});

const resultSchema = z
  .object({
    id: id("qr"),
    status: redriveResultSchema.shape.status.meta({
      description:
        "`released`: an install owns the route key of each item, and Inlet publishes the items in order of arrival. `kept`: the intake still holds some of the items. `refused`: the item was not processed, for the reason in `message`. `unavailable`: the result is unknown, and it is safe to repeat the redrive.",
    }),
    message: z.string().nullable(),
    routed: z.int().meta({ description: "Number of items whose route key an install owns." }),
    held: z.int().meta({ description: "Number of items that the intake still holds." }),
    quarantine: quarantineReceipts.meta({ description: "The records of the items that are still held." }),
  })
  .meta({ id: "HeldRedrive", description: "Result of redriving an item that an intake holds." });

export type HeldRedrive = Shown<z.output<typeof resultSchema>>;

const NOTHING = { routed: 0, held: 0, quarantine: [] } as const;

function reject(id: string, message: string): HeldRedrive {
  const { status } = createRejectedResult(id, message);
  return { id, status, message, ...NOTHING };
}

async function redriveOne(
  { findCompiledChannel, redriveHeld }: Deps,
  intake: ChannelRow,
  item: QuarantinedItem,
  signal: AbortSignal,
): Promise<HeldRedrive> {
  const { id, reason } = item.record;
  const message = REFUSED[reason];
  if (message !== undefined) return reject(id, message);
  const channel = await findCompiledChannel(intake.number);
  if (channel?.routes === undefined) return reject(id, "The intake was deleted.");
  const result = await redriveHeld(channel, channel.routes, item, { signal });
  if (result.kind === "tooManyItems") return reject(id, `The delivery has more than ${result.limit} items.`);
  const { routed, held, quarantine } = result;
  return { id, status: quarantine.length > 0 ? "kept" : "released", message: null, routed, held, quarantine };
}

async function redriveAll(
  deps: Deps,
  intake: ChannelRow,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<readonly HeldRedrive[]> {
  const results: HeldRedrive[] = [];
  for (const [index, id] of ids.entries()) {
    try {
      const item = await deps.quarantine.find(intake.organizationId, id);
      // The item was deleted or redriven after it was listed.
      if (item !== undefined) results.push(await redriveOne(deps, intake, item, signal));
    } catch (error) {
      if (!(error instanceof UnavailableError) || results.length === 0) throw error;
      deps.log.warn(
        { event: "quarantine.redrive_cut_short", err: error },
        "Redrive stopped early because the quarantine cannot be written. The remaining items stay in quarantine.",
      );
      const { message } = error;
      results.push(
        ...ids.slice(index).map((id) => ({ id, status: "unavailable" as const, message, ...NOTHING })),
      );
      break;
    }
  }
  return results;
}

type GetItem = (
  caller: Caller,
  params: { readonly blueprintId: string; readonly itemId: string },
) => Promise<{ readonly intake: ChannelRow; readonly found: QuarantinedItem }>;

/** Routes that route held items again, after their cause was fixed. They return counts, and no data of an install. */
export const heldRedrives = (deps: Deps, getItem: GetItem): readonly Route[] => [
  defineRoute({
    at: "POST /blueprints/:blueprintId/quarantine/redrive",
    operation: "redriveIntakeQuarantine",
    summary: "Redrive many items that an intake holds",
    description:
      "Routes the first `limit` matching items, in order of arrival, by the intake's current `routeBy`. Inlet publishes an item whose route key an install owns within two seconds, before later items of that key. An item of an install stays where it is, because Inlet publishes it anyway. Returns one result per item, with counts only.",
    body: redriveAllSchema,
    answer: z.array(resultSchema),
    missing: "the organization has no such blueprint, or the blueprint has no intake",
    async handle({ caller, params, body: { limit, reason, from: fromMs, to: toMs }, c }) {
      const { intake } = await getIntake(deps.db, caller, params.blueprintId);
      const filter = {
        organizationId: intake.organizationId,
        channelNumbers: [intake.number],
        reason,
        ...omitUndefined({ fromMs, toMs }),
      };
      const { records } = await deps.quarantine.list(filter, { limit, offset: 0 });
      const ids = records.map((record) => record.id);
      await recordUse(deps, caller, "redrive", "quarantinedItem", ids);
      return redriveAll(deps, intake, ids, c.req.raw.signal);
    },
  }),
  defineRoute({
    at: "POST /blueprints/:blueprintId/quarantine/:itemId/redrive",
    operation: "redriveIntakeQuarantinedItem",
    summary: "Redrive an item that an intake holds",
    description:
      "Routes the item by the intake's current `routeBy`. If an install owns its route key, Inlet publishes it within two seconds, before later items of that key. It is safe to repeat a redrive.",
    body: z.strictObject({}),
    answer: resultSchema,
    missing: "the intake holds no such item",
    conflict:
      "the item cannot be redriven: its signature is invalid, or it waits until the intake is resumed",
    async handle({ caller, params, c }) {
      const { intake, found } = await getItem(caller, params);
      await recordUse(deps, caller, "redrive", "quarantinedItem", [found.record.id]);
      const result = await redriveOne(deps, intake, found, c.req.raw.signal);
      if (result.status === "refused") throw conflict(result.message ?? "The item cannot be redriven.");
      return result;
    },
  }),
];
