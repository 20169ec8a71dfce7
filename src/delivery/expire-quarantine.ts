import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { Queryable } from "../data/database.ts";

const PAGE = 500;

/** Lets go what is past its keep, in every organization in turn. @throws UnavailableError */
export async function expireQuarantine(
  { db, quarantine }: { readonly db: Queryable; readonly quarantine: Pick<QuarantineStore, "expire"> },
  signal: AbortSignal,
): Promise<void> {
  let after = "";
  for (;;) {
    const page = await db
      .selectFrom("organizations")
      .select("id")
      .where("id", ">", after)
      .orderBy("id")
      .limit(PAGE)
      .execute();
    for (const { id } of page) {
      signal.throwIfAborted();
      await quarantine.expire(id);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.id;
  }
}
