import { operatorOf } from "../../data/accounts/audit-entry.ts";
import type { Trx } from "../../data/database.ts";
import { changedFields } from "../../lib/changed-fields.ts";
import { insertBlueprint, updateBlueprint } from "../../resources/apps/blueprints/queries.ts";
import type { WantedBlueprint } from "./check.ts";
import type { Step } from "./plan.ts";

/** Brings the blueprint of that uid to what is wanted. */
export async function reconcileBlueprint(
  trx: Trx,
  organization: { readonly id: string; readonly name: string },
  wanted: WantedBlueprint,
  nowMs: number,
): Promise<Step> {
  const object = `blueprint ${wanted.uid} in ${organization.name}`;
  const author = operatorOf(organization.id);
  const before = await trx
    .selectFrom("blueprints")
    .selectAll()
    .where("organizationId", "=", organization.id)
    .where("uid", "=", wanted.uid)
    .forUpdate()
    .executeTakeFirst();
  if (!before) {
    await insertBlueprint(trx, author, wanted, nowMs);
    return { action: "create", object };
  }
  const { title, description, channels } = before;
  // As it is once it was kept: fields that are undefined are none.
  const { uid: _, ...content } = JSON.parse(JSON.stringify(wanted)) as WantedBlueprint;
  const fields = changedFields({ title, description, channels }, content);
  if (fields.length === 0) return { action: "unchanged", object };
  await updateBlueprint(trx, author, before, wanted, nowMs);
  return { action: "update", object, fields };
}
