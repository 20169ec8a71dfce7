import type { Queryable } from "../../data/database.ts";
import { groupMember } from "./iam-entities.ts";

/** The members of each, as an answer holds them. */
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

/** By the time that they joined. */
export const membersOf = (db: Queryable, groupIds: readonly string[]) =>
  db
    .selectFrom("groupMembers")
    .selectAll()
    .where("groupId", "in", groupIds.concat(""))
    .orderBy("createdAt")
    .orderBy("id");
