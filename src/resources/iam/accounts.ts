import { addMember } from "../../data/accounts/accounts.ts";
import type { Trx } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import { requireHeld } from "../../http/callers/authorize.ts";
import type { Caller } from "../../http/context.ts";
import { conflict } from "../../http/errors.ts";
import { visibleAccounts } from "../kit/account-scope.ts";
import { listRows } from "../kit/references.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { permissionsOfAccount, requireOtherAdministrator } from "./iam-grants.ts";
import { heldPermissions, rolesOf } from "./render-permission.ts";
import { account, identity, membership } from "./schema.ts";

type Status = Row<"accounts">["status"];
const STEPS: Readonly<Record<Status, readonly Status[]>> = {
  pending: ["pending", "active"],
  active: ["active", "disabled"],
  disabled: ["disabled"],
};

/**
 * Routes of accounts. An account is a person or program that calls the API, visible to its organizations and to the one that created it.
 */
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
  foreign: "Only the organization that created an account can change it.",
  inUse: {
    when: "the account has API keys that are not revoked, or it is the one that Inlet created at its first start",
    message:
      "The account cannot be deleted. Either it has API keys, which you must revoke first, or it is the one that Inlet created at its first start.",
  },
  async prepare({ trx, caller, id, before, values: { status }, nowMs }) {
    if (before && !STEPS[before.status].includes(status))
      throw conflict(`The status of an account cannot change from ${before.status} to ${status}.`);
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
    create: { description: "The new account becomes a member of the organization, without permissions." },
    update: {
      description:
        "The status changes from pending to active to disabled, without skipping a step, and never back. Keys and identities of a disabled account are rejected. To disable an account, the caller must hold all of its permissions.",
      conflict:
        "the status would go back or skip a step; or no other account would have a valid key with the permission `*`",
    },
    delete: {
      description:
        "The caller must hold all permissions of the account. Its memberships and identities are deleted, and it leaves all groups, rooms and conversations. Resources and messages of the account remain, without an author, owner or executor.",
    },
  },
});

/** Checks that the caller may disable or delete the account. The caller must hold all permissions of the account. @throws ApiError 403 */
async function requireEnding(trx: Trx, caller: Caller, accountId: string, nowMs: number): Promise<void> {
  requireHeld(caller, await permissionsOfAccount(trx, caller, accountId, nowMs), "take away");
}
