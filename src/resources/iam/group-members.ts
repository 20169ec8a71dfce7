import type { Queryable } from "../../data/database.ts";
import { groupMember } from "./schema.ts";

/** Loads the members of several groups in one query. Returns a function that renders the members of one group. */
export async function insideGroups(db: Queryable, rows: readonly { readonly id: string }[]) {
  const members = Map.groupBy(
    await membersOf(
      db,
      rows.map(({ id }) => id),
    ).execute(),
    ({ groupId }) => groupId,
  );
  return ({ id }: { readonly id: string }) => ({
    members: (members.get(id) ?? []).map((one) => groupMember.render(one)),
  });
}

/** Selects the members of the groups, sorted by the time they joined. */
export const membersOf = (db: Queryable, groupIds: readonly string[]) =>
  db
    .selectFrom("groupMembers")
    .selectAll()
    .where("groupId", "in", groupIds.concat(""))
    .orderBy("createdAt")
    .orderBy("id");
