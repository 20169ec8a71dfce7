import { sql } from "kysely";
import { z } from "zod";
import type { Queryable, Trx } from "../../data/database.ts";
import type { BlueprintRow, Row } from "../../data/tables.ts";

/** Copy of a blueprint, made when the store approves the artifact that offers the blueprint. */
export const approvedBlueprint = z.object({
  version: z.int(),
  uid: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  channels: z.custom<BlueprintRow["channels"]>(),
  /** Missing in copies that earlier versions have made. */
  intake: z.custom<BlueprintRow["intake"]>(),
});
export type ApprovedBlueprint = z.output<typeof approvedBlueprint>;

/** Returns whether the artifact is in a store that requires approval and belongs to another organization. */
export async function needsApproval(
  db: Queryable,
  { offeredIn, organizationId }: Pick<Row<"artifacts">, "offeredIn" | "organizationId">,
): Promise<boolean> {
  if (offeredIn === null) return false;
  const store = await db
    .selectFrom("stores")
    .select("id")
    .where("id", "=", offeredIn)
    .where("requireApproval", "=", true)
    .where("organizationId", "!=", organizationId)
    .executeTakeFirst();
  return store !== undefined;
}

/** `null` if the artifact has no blueprint. */
export async function blueprintNow(
  db: Queryable,
  { blueprintId, organizationId }: Pick<Row<"artifacts">, "blueprintId" | "organizationId">,
): Promise<ApprovedBlueprint | null> {
  const found = await db
    .selectFrom("blueprints")
    .select(["version", "uid", "title", "description", "channels", "intake"])
    .where("id", "=", blueprintId ?? "")
    .where("organizationId", "=", organizationId)
    .executeTakeFirst();
  return found ?? null;
}

/** Approves the current versions of all published artifacts of a store. Called when the store starts to require approval. */
export async function approvePublished(trx: Trx, storeId: string): Promise<void> {
  await sql`
    UPDATE artifacts
    SET approved = json_build_object(
      'version', blueprints.version, 'uid', blueprints.uid, 'title', blueprints.title,
      'description', blueprints.description, 'channels', blueprints.channels, 'intake', blueprints.intake
    )
    FROM blueprints
    WHERE blueprints.id = artifacts.blueprint_id AND artifacts.offered_in = ${storeId}
      AND artifacts.status = 'published'`.execute(trx);
}

/** SQL condition on `artifacts`: the artifact is pending, or its blueprint has a version that the store has not approved. */
export const AWAITS_APPROVAL = sql<boolean>`(
  artifacts.status = 'pending' OR artifacts.status = 'published' AND EXISTS (
    SELECT FROM stores, blueprints
    WHERE stores.id = artifacts.offered_in AND stores.require_approval
      AND stores.organization_id <> artifacts.organization_id AND blueprints.id = artifacts.blueprint_id
      AND blueprints.version::text IS DISTINCT FROM artifacts.approved->>'version'
  )
)`;
