import { recordAudit } from "../../data/audit.ts";
import { declaredBy } from "../../data/audit-entry.ts";
import type { Trx } from "../../data/database.ts";
import { changedFields } from "../../lib/changed-fields.ts";
import { insertBlueprint, updateBlueprint } from "../../resources/blueprints/queries.ts";
import type { WantedBlueprint } from "./check.ts";
import type { Step } from "./plan.ts";
import { asStored } from "./stored.ts";

/** Brings the blueprint of that uid to what is wanted. */
export async function reconcileBlueprint(
  trx: Trx,
  organization: { readonly id: string; readonly name: string },
  wanted: WantedBlueprint,
  nowMs: number,
): Promise<Step> {
  const object = `blueprint ${wanted.uid} in ${organization.name}`;
  const author = declaredBy(organization.id);
  const before = await trx
    .selectFrom("blueprints")
    .selectAll()
    .where("organizationId", "=", organization.id)
    .where("uid", "=", wanted.uid)
    .forUpdate()
    .executeTakeFirst();
  if (!before) {
    const { id } = await insertBlueprint(trx, organization.id, wanted, nowMs);
    await recordAudit(trx, author, { action: "create", entity: "blueprint", id }, nowMs);
    return { action: "create", object };
  }
  const { title, description, channels } = before;
  const { uid: _, ...content } = asStored(wanted);
  const fields = changedFields({ title, description, channels }, content);
  if (fields.length === 0) return { action: "unchanged", object };
  await updateBlueprint(trx, before, wanted, nowMs);
  await recordAudit(trx, author, { action: "update", entity: "blueprint", id: before.id, fields }, nowMs);
  return { action: "update", object, fields };
}
