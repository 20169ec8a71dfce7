import { isUniqueViolation, type Queryable } from "../../data/database.ts";
import type { BlueprintChannel, BlueprintRow } from "../../data/tables.ts";
import type { Listed, Page } from "../../http/page.ts";
import { conflict } from "../../http/problem.ts";
import { createId, isId } from "../../lib/ids.ts";

/** What is written of a blueprint. */
export interface BlueprintContent {
  readonly uid: string | undefined;
  readonly title: string;
  readonly description: string | null;
  readonly channels: readonly BlueprintChannel[];
}

/** @throws ApiError 409 when the organization has a blueprint of that uid. */
export async function insertBlueprint(
  db: Queryable,
  organizationId: string,
  { uid, title, description, channels }: BlueprintContent,
  nowMs: number,
): Promise<BlueprintRow> {
  const id = createId("bp", nowMs);
  return refuseKnownUid(
    db
      .insertInto("blueprints")
      .values({
        id,
        uid: uid ?? id,
        title,
        description,
        organizationId,
        channels: JSON.stringify(channels),
        createdAt: new Date(nowMs),
        updatedAt: new Date(nowMs),
      })
      .returningAll()
      .executeTakeFirstOrThrow(),
  );
}

export async function findBlueprint(
  db: Queryable,
  organizationId: string,
  id: string,
): Promise<BlueprintRow | undefined> {
  if (!isId("bp", id)) return undefined;
  return db
    .selectFrom("blueprints")
    .selectAll()
    .where("id", "=", id)
    .where("organizationId", "=", organizationId)
    .executeTakeFirst();
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
  db: Queryable,
  before: BlueprintRow,
  { uid, title, description, channels }: BlueprintContent,
  nowMs: number,
): Promise<BlueprintRow | undefined> {
  return refuseKnownUid(
    db
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
}

/**
 * Deletes the blueprint once `check` lets it be; installed apps stay, and no longer name one. False where there is none.
 *
 * @throws whatever `check` throws
 */
export async function deleteBlueprint(
  db: Queryable,
  organizationId: string,
  id: string,
  check: (row: BlueprintRow) => void,
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom("blueprints")
      .selectAll()
      .where("id", "=", id)
      .where("organizationId", "=", organizationId)
      .forUpdate()
      .executeTakeFirst();
    if (!row) return false;
    check(row);
    await trx.deleteFrom("blueprints").where("id", "=", row.id).execute();
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
