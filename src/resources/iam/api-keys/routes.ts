import { insertAccount } from "../../../data/accounts/accounts.ts";
import { createToken, revokeApiKey } from "../../../data/accounts/api-keys.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import { ALL_PERMISSIONS, requireHeld } from "../../../http/callers/authorize.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError, invalidParameters } from "../../../http/problem.ts";
import { requireAccounts } from "../../kit/account-scope.ts";
import { requireRow, SPACES } from "../../kit/references.ts";
import type { Kit } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { apiKey, newApiKeySchema } from "../iam-entities.ts";
import {
  type Grant,
  grant,
  type IamDeps,
  permissionsOfGrant,
  requireOtherAdministrator,
  requireTakeable,
} from "../iam-grants.ts";

/** A revoked key is kept, so that it is never taken again; nobody sees it. */
const unrevoked = (db: Queryable, { organizationId }: Caller) =>
  db.selectFrom("apiKeys").where("organizationId", "=", organizationId).where("revokedAt", "is", null);

const LAST = "no other key in force would have the permission `*`";

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
    if (before) await requireChangeable(trx, caller, before, { ...granted, expires }, nowMs);
    const accountId = before?.accountId ?? (await accountOf(trx, deps, caller, values, nowMs));
    // To let it last longer is to grant all of it anew.
    if (before?.expiresAt && (expires === null || expires > before.expiresAt))
      requireHeld(caller, await permissionsOfGrant(trx, caller, granted));
    if (spaceId !== before?.spaceId) await requireRow(trx, caller, SPACES, spaceId);
    return { ...granted, accountId, spaceId };
  },
  inside:
    async () =>
    ({ spaceId }) => ({ defaultSpaceId: spaceId }),
  async remove({ trx, caller, row, nowMs }) {
    if (row.id !== caller.keyId) await requireTakeable(trx, caller, row);
    await requireOtherAdministrator(trx, caller, { keyId: row.id }, nowMs);
    await revokeApiKey(trx, caller, row.id, nowMs);
  },
  notes: {
    update: {
      description:
        "Who adds permissions or roles, or lets the key last longer, must hold what that grants; who takes some away from another key, or lets it end sooner, must hold them too.",
      conflict: LAST,
    },
    delete: {
      description:
        "Revokes it for good: in force everywhere within five seconds. Its account stays. The caller must hold what the key may do; a key may always revoke itself, but for the last one that may do all.",
      conflict: LAST,
      allows: ({ keyId }, { apiKeyId }) => keyId !== null && keyId === apiKeyId,
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
        conflict: ROW_LIMIT_CONFLICT,
        description:
          "`key` is the bearer token, told here only. What it may do is the union of its permissions and of those that its roles have when it is used. Without `accountId` it gets a service account of its own; nobody makes a key for another's account (403).",
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

/** The account that the key speaks for: the caller's, or a new one. @throws ApiError 404, 403 */
async function accountOf(
  trx: Trx,
  { requireRoom }: Pick<IamDeps, "requireRoom">,
  caller: Caller,
  { accountId, name }: { readonly accountId?: string | null | undefined; readonly name: string },
  nowMs: number,
): Promise<string> {
  if (accountId != null) {
    await requireAccounts(trx, caller, [accountId]);
    if (accountId === caller.accountId) return accountId;
    throw new ApiError("permission_denied", "You can make keys for your own account, or for a new one.");
  }
  await requireRoom(trx, caller, { table: "accounts", words: "accounts" });
  const account = { name, isService: true, status: "active" } as const;
  const { id } = await insertAccount(trx, caller.organizationId, account, nowMs);
  await recordAudit(trx, caller, { action: "create", entity: "account", id }, nowMs);
  return id;
}

/**
 * @throws ApiError 403 where another key loses more than the caller holds, 409 where the last one that may do all would lose that,
 * or would be the last to end
 */
async function requireChangeable(
  trx: Trx,
  caller: Caller,
  before: Row<"apiKeys">,
  after: Grant & { readonly expires: Date | null },
  nowMs: number,
): Promise<void> {
  const endsSooner =
    after.expires !== null && (before.expiresAt === null || after.expires < before.expiresAt);
  if (before.id !== caller.keyId) await requireTakeable(trx, caller, before, endsSooner ? undefined : after);
  const [were, left] = [
    await permissionsOfGrant(trx, caller, before),
    await permissionsOfGrant(trx, caller, after),
  ];
  if (!were.includes(ALL_PERMISSIONS)) return;
  const isLost = !left.includes(ALL_PERMISSIONS);
  // To end sooner is to lose it then: another one must still be in force by that time.
  const lostAtMs = isLost ? nowMs : endsSooner ? after.expires.getTime() : undefined;
  if (lostAtMs !== undefined) await requireOtherAdministrator(trx, caller, { keyId: before.id }, lostAtMs);
}

/** @throws ApiError 400 where it is over before it begins */
function requireFuture(expires: Date | null, nowMs: number): void {
  if (expires === null || expires.getTime() > nowMs) return;
  throw invalidParameters([{ path: "expiresAt", message: "must be in the future" }]);
}
