import { isId } from "../../lib/ids.ts";
import type { Queryable } from "../database.ts";
import type { BlueprintRow } from "../tables.ts";

/** Finds a blueprint of the organization. Returns `undefined` if the id is malformed or unknown. */
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
