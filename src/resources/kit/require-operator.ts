import type { Queryable } from "../../data/database.ts";
import type { Caller } from "../../http/context.ts";
import { ApiError } from "../../http/errors.ts";

/** Checks that the caller belongs to the operator's organization. @throws ApiError 403 */
export async function requireOperator(
  db: Queryable,
  { organizationId }: Caller,
  act = "create organizations",
): Promise<void> {
  const operator = await db.selectFrom("cluster").select("organizationId").executeTakeFirst();
  if (operator?.organizationId !== organizationId)
    throw new ApiError("permission_denied", `Only the operator's organization can ${act}.`);
}
