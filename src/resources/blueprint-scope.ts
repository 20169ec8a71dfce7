import type { Trx } from "../data/database.ts";
import type { Caller } from "../http/context.ts";
import { notFound } from "../http/problem.ts";
import { isId } from "../lib/ids.ts";

/**
 * The organization has that blueprint, and nobody deletes it until the transaction ends; null names none.
 *
 * @throws ApiError 404
 */
export async function requireBlueprint(
  trx: Trx,
  { organizationId }: Pick<Caller, "organizationId">,
  id: string | null,
): Promise<void> {
  if (id === null) return;
  const found = isId("bp", id)
    ? await trx
        .selectFrom("blueprints")
        .select("id")
        .where("id", "=", id)
        .where("organizationId", "=", organizationId)
        .forKeyShare()
        .executeTakeFirst()
    : undefined;
  if (!found) throw notFound("blueprint");
}
