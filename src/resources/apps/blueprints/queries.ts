import { recordAudit } from "../../../data/accounts/audit.ts";
import type { Author } from "../../../data/accounts/audit-entry.ts";
import { isUniqueViolation, type Queryable, type Trx } from "../../../data/database.ts";
import type { BlueprintChannel, BlueprintRow } from "../../../data/tables.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict } from "../../../http/problem.ts";
import { changedFields } from "../../../lib/changed-fields.ts";
import { createId } from "../../../lib/ids.ts";

/** What is written of a blueprint. */
export interface BlueprintContent {
  readonly uid: string | undefined;
  readonly title: string;
  readonly description: string | null;
  readonly channels: readonly BlueprintChannel[];
}

/** @throws ApiError 409 when the organization has a blueprint of that uid. */
export async function insertBlueprint(
  trx: Trx,
  author: Author,
  { uid, title, description, channels }: BlueprintContent,
  nowMs: number,
): Promise<BlueprintRow> {
  const id = createId("bp", nowMs);
  const row = await refuseKnownUid(
    trx
      .insertInto("blueprints")
      .values({
        id,
        uid: uid ?? id,
        title,
        description,
        organizationId: author.organizationId,
        channels: JSON.stringify(channels),
        createdAt: new Date(nowMs),
        updatedAt: new Date(nowMs),
      })
      .returningAll()
      .executeTakeFirstOrThrow(),
  );
  await recordAudit(trx, author, { action: "create", entity: "blueprint", id }, nowMs);
  return row;
}

export async function listBlueprints(
  db: Queryable,
  organizationId: string,
  page: Page,
): Promise<Listed<BlueprintRow>> {
  const all = db.selectFrom("blueprints").where("organizationId", "=", organizationId);
  const items = await all
    .selectAll()
    .orderBy("createdAt")
    .orderBy("id")
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const { total } = await all.select((eb) => eb.fn.countAll<number>().as("total")).executeTakeFirstOrThrow();
  return { items, total };
}

/**
 * Replaces what is written of the blueprint, if it still is the version given; undefined where it no longer is.
 *
 * @throws ApiError 409 when another has the uid.
 */
export async function updateBlueprint(
  trx: Trx,
  author: Author,
  before: BlueprintRow,
  content: BlueprintContent,
  nowMs: number,
): Promise<BlueprintRow | undefined> {
  const { uid, title, description, channels } = content;
  const row = await refuseKnownUid(
    trx
      .updateTable("blueprints")
      .set({
        uid: uid ?? before.uid,
        title,
        description,
        channels: JSON.stringify(channels),
        version: before.version + 1,
        updatedAt: new Date(nowMs),
      })
      .where("id", "=", before.id)
      .where("version", "=", before.version)
      .returningAll()
      .executeTakeFirst(),
  );
  if (!row) return undefined;
  const fields = changedFields(contentOf(before), contentOf(row));
  await recordAudit(trx, author, { action: "update", entity: "blueprint", id: row.id, fields }, nowMs);
  return row;
}

/** What may be changed of it. */
const contentOf = ({ uid, title, description, channels }: BlueprintRow) => ({
  ...{ uid, title, description, channels },
});

/**
 * Deletes the blueprint once `check` lets it be; installed apps stay, and no longer name one. False where there is none.
 *
 * @throws whatever `check` throws
 */
export async function deleteBlueprint(
  db: Queryable,
  author: Author,
  id: string,
  check: (row: BlueprintRow) => void,
  nowMs: number,
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom("blueprints")
      .selectAll()
      .where("id", "=", id)
      .where("organizationId", "=", author.organizationId)
      .forUpdate()
      .executeTakeFirst();
    if (!row) return false;
    check(row);
    await trx.deleteFrom("blueprints").where("id", "=", row.id).execute();
    await recordAudit(trx, author, { action: "delete", entity: "blueprint", id }, nowMs);
    return true;
  });
}

async function refuseKnownUid<T>(written: Promise<T>): Promise<T> {
  try {
    return await written;
  } catch (error) {
    if (isUniqueViolation(error, "blueprints_uid"))
      throw conflict("There is a blueprint of that uid already.");
    throw error;
  }
}
