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

/** Installed apps stay; they no longer name a blueprint. False where there is none. */
export async function deleteBlueprint(db: Queryable, organizationId: string, id: string): Promise<boolean> {
  if (!isId("bp", id)) return false;
  const deleted = await db
    .deleteFrom("blueprints")
    .where("id", "=", id)
    .where("organizationId", "=", organizationId)
    .returning("id")
    .executeTakeFirst();
  return deleted !== undefined;
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
