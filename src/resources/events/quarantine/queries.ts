import type { Queryable } from "../../../data/database.ts";
import type { AppScope } from "../../apps/app-scope.ts";

/** The numbers of the app's channels, or of the one that has that number. */
export async function findChannelNumbers(
  db: Queryable,
  scope: AppScope,
  one: { readonly number?: number } = {},
): Promise<readonly number[]> {
  const rows = await db
    .selectFrom("channels")
    .select("number")
    .where((eb) => eb.and({ ...scope, ...one }))
    .orderBy("number")
    .execute();
  return rows.map(({ number }) => number);
}
