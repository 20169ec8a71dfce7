import { insertAccount } from "../../../data/accounts/accounts.ts";
import { createToken } from "../../../data/accounts/api-keys.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { recordChange } from "../../../data/changes.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import { requireGrantable } from "../../../http/callers/authorize.ts";
import type { Caller } from "../../../http/context.ts";
import { invalidParameters } from "../../../http/problem.ts";
import { requireAccounts } from "../../kit/account-scope.ts";
import { requireRow, SPACES } from "../../kit/references.ts";
import type { Kit } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { apiKey, newApiKeySchema } from "../iam-entities.ts";
import { grant, type IamDeps, permissionsOfGrant } from "../iam-grants.ts";

/** A revoked key is kept, so that it is never taken again; nobody sees it. */
const unrevoked = (db: Queryable, { organizationId }: Caller) =>
  db.selectFrom("apiKeys").where("organizationId", "=", organizationId).where("revokedAt", "is", null);

/** API keys: bearer tokens of the organization. Each is shown once. */
export const apiKeys = standardResource({
  path: "/iam/api-keys",
  tag: "API keys",
  name: "apiKey",
  words: "API key",
  table: "apiKeys",
  shape: apiKey,
  audit: "apiKey",
  feed: "access",
  visible: unrevoked,
  filters: { query: {}, find: unrevoked },
  readAside: async (_trx, { spaceId }) => ({ defaultSpaceId: spaceId }),
  async prepare({ trx, deps, caller, before, values, nowMs }) {
    const { expiresAt, defaultSpaceId: spaceId = null } = values;
    const expires = expiresAt === null ? null : new Date(expiresAt);
    if (expires?.getTime() !== before?.expiresAt?.getTime()) requireFuture(expires, nowMs);
    const granted = await grant(trx, deps, caller, values, before);
    const accountId = before?.accountId ?? (await accountOf(trx, caller, values, nowMs));
    // To let it last longer is to grant all of it anew.
    if (before?.expiresAt && (expires === null || expires > before.expiresAt))
      requireGrantable(caller, await permissionsOfGrant(trx, caller, granted));
    if (spaceId !== before?.spaceId) await requireRow(trx, caller, SPACES, spaceId);
    return { ...granted, accountId, spaceId };
  },
  inside:
    async () =>
    ({ spaceId }) => ({ defaultSpaceId: spaceId }),
  async remove({ trx, caller, row: { id }, nowMs }) {
    const revokedAt = new Date(nowMs);
    // It lets go of its roles, which can then be deleted.
    const revoked = { revokedAt, updatedAt: revokedAt, permissions: [], roleIds: [] };
    await trx.updateTable("apiKeys").set(revoked).where("id", "=", id).execute();
    await recordAudit(trx, caller, { action: "revoke", entity: "apiKey", id }, nowMs);
    await recordChange(trx, { kind: "access", key: caller.organizationId });
  },
  notes: {
    update: {
      description: "Who adds permissions or roles, or lets the key last longer, must hold what that grants.",
    },
    delete: {
      description: "Revokes it for good: in force everywhere within five seconds. Its account stays.",
    },
  },
  without: ["create"],
  more: (deps: IamDeps, { answer, insert }: Kit<typeof apiKey>) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "createApiKey",
        summary: "Create an API key",
        creates: true,
        body: apiKey.input,
        answer: newApiKeySchema,
        missing: "the account, a role or the space is not there",
        description:
          "`key` is the bearer token, told here only. What it may do is the union of its permissions and of those that its roles have when it is used.",
      },
      ({ caller, body }) =>
        deps.db.transaction().execute(async (trx) => {
          const { token, ...stored } = createToken();
          const row = await insert(trx, caller, {}, { ...body, ...stored });
          return { ...(await answer(trx, caller, row)), key: token };
        }),
    ),
  ],
});

async function accountOf(
  trx: Trx,
  caller: Caller,
  { accountId, name }: { readonly accountId?: string | null | undefined; readonly name: string },
  nowMs: number,
): Promise<string> {
  if (accountId != null) {
    await requireAccounts(trx, caller, [accountId]);
    return accountId;
  }
  const account = { name, isService: true, status: "active" } as const;
  const { id } = await insertAccount(trx, caller.organizationId, account, nowMs);
  await recordAudit(trx, caller, { action: "create", entity: "account", id }, nowMs);
  return id;
}

/** @throws ApiError 400 where it is over before it begins */
function requireFuture(expires: Date | null, nowMs: number): void {
  if (expires === null || expires.getTime() > nowMs) return;
  throw invalidParameters([{ path: "expiresAt", message: "must be in the future" }]);
}
