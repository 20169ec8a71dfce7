import type { Queryable } from "../data/database.ts";
import type { Caller } from "../http/context.ts";
import { notFound } from "../http/problem.ts";
import { isId } from "../lib/ids.ts";
import { pathId } from "./params.ts";

/** The state in a path; extend it by what is below it. */
export const stateParams = { stateId: pathId("state", "state") } as const;

/**
 * The organization has that state; in a transaction nobody deletes it until that ends.
 *
 * @throws ApiError 404
 */
export async function requireState(
  db: Queryable,
  { organizationId }: Pick<Caller, "organizationId">,
  id: string,
): Promise<void> {
  const found = isId("state", id)
    ? await db
        .selectFrom("states")
        .select("id")
        .where("id", "=", id)
        .where("organizationId", "=", organizationId)
        .forKeyShare()
        .executeTakeFirst()
    : undefined;
  if (!found) throw notFound("state");
}
