import { recordAudit } from "../../data/accounts/audit.ts";
import { operatorOf } from "../../data/accounts/audit-entry.ts";
import type { Trx } from "../../data/database.ts";
import { createId } from "../../lib/ids.ts";
import { changedFields } from "../../lib/json/changed-fields.ts";
import type { WantedBlueprint } from "./check.ts";
import type { Organization, Step } from "./plan.ts";

/** Updates a blueprint to match the config file, or creates it. */
export async function reconcileBlueprint(
  trx: Trx,
  organization: Organization,
  wanted: WantedBlueprint,
  nowMs: number,
): Promise<Step> {
  const object = `blueprint ${wanted.uid} in ${organization.name}`;
  const author = operatorOf(organization.id);
  const updatedAt = new Date(nowMs);
  const content = { ...wanted, channels: JSON.stringify(wanted.channels), updatedAt };
  const before = await trx
    .selectFrom("blueprints")
    .selectAll()
    .where("organizationId", "=", organization.id)
    .where("uid", "=", wanted.uid)
    .forUpdate()
    .executeTakeFirst();
  if (!before) {
    const id = createId("bp", nowMs);
    const fresh = { id, organizationId: organization.id, version: 1, createdAt: updatedAt };
    await trx
      .insertInto("blueprints")
      .values({ ...content, ...fresh })
      .execute();
    await recordAudit(trx, author, { action: "create", entity: "blueprint", id }, nowMs);
    return { action: "create", object };
  }
  const { id, title, description, channels, version } = before;
  // Remove `undefined` fields before comparing, because the stored JSON omits them.
  const { uid: _, ...kept } = JSON.parse(JSON.stringify(wanted)) as WantedBlueprint;
  const fields = changedFields({ title, description, channels }, kept);
  if (fields.length === 0) return { action: "unchanged", object };
  await trx
    .updateTable("blueprints")
    .set({ ...content, version: version + 1 })
    .where("id", "=", id)
    .execute();
  await recordAudit(trx, author, { action: "update", entity: "blueprint", id, fields }, nowMs);
  return { action: "update", object, fields };
}
