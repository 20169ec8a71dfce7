import { isId } from "../../lib/ids.ts";
import type { Queryable } from "../database.ts";
import type { BlueprintRow } from "../tables.ts";

/** The organization's blueprint of that id; undefined where there is none, as for an id that is none. */
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
