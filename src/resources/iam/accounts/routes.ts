import { addMember } from "../../../data/accounts/accounts.ts";
import type { Row } from "../../../data/tables.ts";
import { conflict } from "../../../http/problem.ts";
import { visibleAccounts } from "../../kit/account-scope.ts";
import { listRows } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { account, identity, membership } from "../iam-entities.ts";
import { heldPermissions, rolesOf } from "../render-permission.ts";

type Status = Row<"accounts">["status"];
const STEPS: Readonly<Record<Status, readonly Status[]>> = {
  pending: ["pending", "active"],
  active: ["active", "disabled"],
  disabled: ["disabled"],
};

/** Accounts: who calls. An organization sees its members and those that it has made. */
export const accounts = standardResource({
  path: "/iam/accounts",
  tag: "Accounts",
  name: "account",
  table: "accounts",
  shape: account,
  audit: "account",
  feed: "access",
  visible: visibleAccounts,
  filters: { query: {}, find: visibleAccounts },
  foreign: "Only the organization that has made an account can change it.",
  inUse: {
    when: "it has API keys that are not revoked, or is the account of the first start",
    message: "The account has API keys, or is the one of the first start.",
  },
  async prepare({ before, values: { status } }) {
    if (before && !STEPS[before.status].includes(status))
      throw conflict(`An account that is ${before.status} does not become ${status}.`);
    return {};
  },
  async afterWrite({ trx, caller, before, id, nowMs }) {
    if (!before) await addMember(trx, caller.organizationId, id, nowMs);
  },
  async remove({ trx, caller: { organizationId }, row: { id }, remove }) {
    const keys = trx.deleteFrom("apiKeys").where("accountId", "=", id);
    await keys.where("organizationId", "=", organizationId).where("revokedAt", "is not", null).execute();
    await remove();
  },
  async inside(db, rows, caller) {
    const ids = rows.map(({ id }) => id);
    const known = await listRows(db, caller, "identities", "accountId", ids);
    const identities = Map.groupBy(known, ({ accountId }) => accountId);
    const members = await listRows(db, caller, "memberships", "accountId", ids);
    const held = heldPermissions(caller.organizationId, await rolesOf(db, caller, members));
    const memberships = Map.groupBy(members, ({ accountId }) => accountId);
    return ({ id }) => ({
      identities: (identities.get(id) ?? []).map((row) => identity.render(row)),
      memberships: (memberships.get(id) ?? []).map((row) => membership.render(row, held(row))),
    });
  },
  notes: {
    create: { description: "It becomes a member of the organization, which grants nothing yet." },
    update: {
      description:
        "The status goes from pending to active to disabled, step by step and never back. A disabled account's keys and identities let nobody in.",
      conflict: "the status would go back, or past a step",
    },
    delete: {
      description:
        "Its memberships, identities and places in groups, rooms and conversations go with it; what it has written, owned or was to do is nobody's.",
    },
  },
});
