import { z } from "zod";
import type { QuarantinedItem } from "../../../bus/quarantine/quarantine-record.ts";
import { hasOwner } from "../../../data/intakes/route-keys.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import { QUARANTINE_REASONS, type QuarantineReason } from "../../../event/outcome.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, notFound } from "../../../http/errors.ts";
import { deleted, type Shown } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { withoutChannelIds } from "../../../lib/secrets/channel-id.ts";
import { redactTexts } from "../../../lib/secrets/redact.ts";
import { getIntake } from "../../apps/intake-scope.ts";
import { listOf } from "../../kit/answer.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { pathId, pathText } from "../../kit/params.ts";
import { pickFields } from "../../kit/pick-fields.ts";
import { recordUse } from "../../kit/record-use.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { heldRedrives } from "./intake-redrive.ts";
import { filters, itemSchema, recordSchema, renderItem, renderRecord } from "./schema.ts";

const { id: itemId, reason, detail, count, firstAt, lastAt } = recordSchema.shape;
const { arrivedAt, deliveryId, method, headers, query, body, bodyEncoding } = itemSchema.shape;
const heldFields = { id: itemId, reason, detail, count, firstAt, lastAt };

export const heldRecordSchema = z
  .object(heldFields)
  .meta({ id: "HeldRecord", description: "Items that the intake could not route, with the reason." });

export type HeldRecord = Shown<z.output<typeof heldRecordSchema>>;

export const heldItemSchema = z
  .object({ ...heldFields, arrivedAt, deliveryId, method, headers, query, body, bodyEncoding })
  .meta({ id: "HeldItem", description: "Items that the intake could not route, with their delivery." });

/** Reasons of items that belong to no install, unless one owns their route key. The blueprint's owner may see their deliveries. */
const UNOWNED: ReadonlySet<QuarantineReason> = new Set([
  "no_route",
  "no_install",
  "invalid_body",
  "signature_invalid",
]);

/** Routes for the items that an intake holds: those that it could not route, and those that wait for an install. */
export const intakeQuarantine: Resource = {
  tag: "Blueprints",
  params: {
    blueprintId: pathId("bp", "blueprint"),
    itemId: pathText(/^[A-Za-z0-9_]{1,64}$/, "quarantined item", "qr_1"),
  },
  routes: (deps) => {
    const { db, quarantine } = deps;

    async function getItem(
      caller: Caller,
      { blueprintId, itemId }: { readonly blueprintId: string; readonly itemId: string },
    ): Promise<{ readonly intake: ChannelRow; readonly found: QuarantinedItem }> {
      const { intake } = await getIntake(db, caller, blueprintId);
      const found = await quarantine.find(caller.organizationId, itemId);
      if (found?.record.channelNumber !== intake.number) throw notFound("quarantined item");
      return { intake, found };
    }

    return [
      ...heldRedrives(deps, getItem),
      defineRoute({
        at: "GET /blueprints/:blueprintId/quarantine",
        operation: "listIntakeQuarantine",
        summary: "List the items that an intake holds",
        description:
          "`no_route`: the item has no route key. `no_install`: no install has its key; the item is published when an install claims the key. `over_limit`: the quarantine of the install's organization is full, or the item could not be validated in time; Inlet publishes it later. Also lists rejected and buffered deliveries.",
        query: z.object({
          reason: z.enum(QUARANTINE_REASONS).optional().describe("Selects items with this reason."),
          from: filters.from,
          to: filters.to,
          ...pageQuery,
        }),
        answer: listOf(heldRecordSchema),
        missing: "the organization has no such blueprint, or the blueprint has no intake",
        async handle({ caller, params, query: { reason, from: fromMs, to: toMs, ...page } }) {
          const { intake } = await getIntake(db, caller, params.blueprintId);
          const { organizationId } = intake;
          const filter = {
            organizationId,
            channelNumbers: [intake.number],
            ...omitUndefined({ reason, fromMs, toMs }),
          };
          const { records, total } = await quarantine.list(filter, page);
          const items = records.map((record) => pickFields(heldRecordSchema.shape, renderRecord(record)));
          return { items, total };
        },
      }),
      defineRoute({
        at: "GET /blueprints/:blueprintId/quarantine/:itemId",
        operation: "getIntakeQuarantinedItem",
        summary: "Get an item that an intake holds, with its delivery",
        description:
          "Returns the delivery with secrets replaced by `***`. Deliveries that may belong to an install are not visible.",
        answer: heldItemSchema,
        missing: "the intake holds no such item",
        conflict: "the item may belong to an install",
        async handle({ caller, params }) {
          const { intake, found } = await getItem(caller, params);
          const { reason, routeKey: key } = found.record;
          const isOwned = key !== undefined && (await hasOwner(db, { blueprintId: params.blueprintId, key }));
          if (!UNOWNED.has(reason) || isOwned)
            throw conflict("The item may belong to an install, so its delivery is not visible.");
          await recordUse(deps, caller, "read", "quarantinedItem", [found.record.id]);
          const channel = await deps.findCompiledChannel(intake.number);
          const redact = channel?.sender.createRedactor(found.delivery) ?? withoutChannelIds;
          const item = pickFields(heldItemSchema.shape, renderItem(found, [], redact));
          return redactTexts(item, redact);
        },
      }),
      defineRoute({
        at: "DELETE /blueprints/:blueprintId/quarantine/:itemId",
        operation: "deleteIntakeQuarantinedItem",
        summary: "Delete an item that an intake holds",
        description: "The item is lost.",
        answer: deleted,
        missing: "the intake holds no such item",
        async handle({ caller, params }) {
          const { found } = await getItem(caller, params);
          const { id } = found.record;
          await recordUse(deps, caller, "delete", "quarantinedItem", [id]);
          if (!(await quarantine.delete(caller.organizationId, id))) throw notFound("quarantined item");
          return { id };
        },
      }),
    ];
  },
};
