import { addMember } from "../../../data/accounts/accounts.ts";
import type { Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import { requireHeld } from "../../../http/callers/authorize.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict } from "../../../http/problem.ts";
import { visibleAccounts } from "../../kit/account-scope.ts";
import { listRows } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { account, identity, membership } from "../iam-entities.ts";
import { permissionsOfAccount, requireOtherAdministrator } from "../iam-grants.ts";
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
  async prepare({ trx, caller, id, before, values: { status }, nowMs }) {
    if (before && !STEPS[before.status].includes(status))
      throw conflict(`An account that is ${before.status} does not become ${status}.`);
    if (before?.status === "active" && status === "disabled") {
      await requireEnding(trx, caller, id, nowMs);
      await requireOtherAdministrator(trx, caller, { accountId: id }, nowMs);
    }
    return {};
  },
  async afterWrite({ trx, caller, before, id, nowMs }) {
    if (!before) await addMember(trx, caller.organizationId, id, nowMs);
  },
  async remove({ trx, caller, row: { id }, nowMs, remove }) {
    const { organizationId } = caller;
    await requireEnding(trx, caller, id, nowMs);
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
        "The status goes from pending to active to disabled, step by step and never back. A disabled account's keys and identities let nobody in. Who disables one must hold what it may do.",
      conflict:
        "the status would go back, or past a step; or no other account would have a key in force with the permission `*`",
    },
    delete: {
      description:
        "Who deletes one must hold what it may do. Its memberships, identities and places in groups, rooms and conversations go with it; what it has written, owned or was to do is nobody's.",
    },
  },
});

/** Nobody disables or deletes an account that may do more than they. @throws ApiError 403 */
async function requireEnding(trx: Trx, caller: Caller, accountId: string, nowMs: number): Promise<void> {
  requireHeld(caller, await permissionsOfAccount(trx, caller, accountId, nowMs), "take away");
}
