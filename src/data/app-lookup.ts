import type { Queryable } from "./database.ts";

/** True when the app is there and the organization's. */
export async function hasApp(db: Queryable, organizationId: string, appId: string): Promise<boolean> {
  const row = await db
    .selectFrom("apps")
    .select("id")
    .where("id", "=", appId)
    .where("organizationId", "=", organizationId)
    .executeTakeFirst();
  return row !== undefined;
}
