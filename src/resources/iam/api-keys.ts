import { insertAccount } from "../../data/accounts/accounts.ts";
import { createToken, revokeApiKey } from "../../data/accounts/api-keys.ts";
import { recordAudit } from "../../data/accounts/audit.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import { ALL_PERMISSIONS, requireHeld } from "../../http/callers/authorize.ts";
import type { Caller } from "../../http/context.ts";
import { ApiError, invalidParameters } from "../../http/errors.ts";
import { requireAccounts } from "../kit/account-scope.ts";
import type { Deps } from "../kit/deps.ts";
import { requireRow, SPACES } from "../kit/references.ts";
import { defineRoute } from "../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../kit/row-limit.ts";
import { standardResource } from "../kit/standard-resource.ts";
import {
  type Grant,
  grant,
  permissionsOfGrant,
  requireOtherAdministrator,
  requireTakeable,
} from "./iam-grants.ts";
import { apiKey, newApiKeySchema } from "./schema.ts";

/** Selects keys that are not revoked. Revoked keys stay in the table, so that the same key cannot be issued again. */
const unrevoked = (db: Queryable, { organizationId }: Caller) =>
  db.selectFrom("apiKeys").where("organizationId", "=", organizationId).where("revokedAt", "is", null);

const LAST = "after this change, no valid key would have the permission `*`";

/** Routes of API keys. A key's secret token is only returned by the request that creates the key. */
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
    // A later expiry counts as granting the key's permissions again, so the caller must hold all of them.
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
        "To add permissions or roles, or to extend the lifetime, the caller must hold the permissions that the change grants. To remove permissions from another key or shorten its lifetime, the caller must hold the permissions that the key loses.",
      conflict: LAST,
    },
    delete: {
      description:
        "Revokes the key permanently. All gateways reject it within five seconds. The key's account is not deleted. The caller must hold all permissions of the key. A key can always revoke itself, unless it is the last one with `*`.",
      conflict: LAST,
      allows: ({ keyId }, { apiKeyId }) => keyId !== null && keyId === apiKeyId,
    },
  },
  without: ["create"],
  more: (deps, { answer, insert }) => [
    defineRoute({
      at: "POST /iam/api-keys",
      operation: "createApiKey",
      summary: "Create an API key",
      creates: true,
      body: apiKey.input,
      answer: newApiKeySchema,
      missing: "the account, a role or the space does not exist",
      conflict: ROW_LIMIT_CONFLICT,
      description:
        "`key` is the bearer token. Only this response contains it. The key has its own permissions and the current permissions of its roles. Without `accountId`, Inlet creates a service account for the key. A key for another account is rejected (403).",
      handle: ({ caller, body }) =>
        deps.db.transaction().execute(async (trx) => {
          const { token, ...stored } = createToken();
          const row = await insert(trx, caller, {}, { ...body, ...stored });
          return { ...(await answer(trx, caller, row)), key: token };
        }),
    }),
  ],
});

/** Returns the account for the new key: the caller's account, or a new service account. @throws ApiError 403, 404 */
async function accountOf(
  trx: Trx,
  { requireRoom }: Deps,
  caller: Caller,
  { accountId, name }: { readonly accountId?: string | null | undefined; readonly name: string },
  nowMs: number,
): Promise<string> {
  if (accountId != null) {
    await requireAccounts(trx, caller, [accountId]);
    if (accountId === caller.accountId) return accountId;
    throw new ApiError(
      "permission_denied",
      "You can only create keys for your own account or for a new one. Omit accountId for a new account.",
    );
  }
  await requireRoom(trx, caller, { table: "accounts", words: "accounts" });
  const account = { name, isService: true, status: "active" } as const;
  const { id } = await insertAccount(trx, caller.organizationId, account, nowMs);
  await recordAudit(trx, caller, { action: "create", entity: "account", id }, nowMs);
  return id;
}

/**
 * Checks that the caller may change the key.
 * @throws ApiError 403 if another key would lose permissions that the caller lacks; 409 if the organization's last `*`
 * key would lose `*` or expire
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
  // A key with an earlier expiry loses `*` when it expires. Another key with `*` must still be valid at that time.
  const lostAtMs = isLost ? nowMs : endsSooner ? after.expires.getTime() : undefined;
  if (lostAtMs !== undefined) await requireOtherAdministrator(trx, caller, { keyId: before.id }, lostAtMs);
}

/** Checks that the expiry is in the future. @throws ApiError 400 if it is not */
function requireFuture(expires: Date | null, nowMs: number): void {
  if (expires === null || expires.getTime() > nowMs) return;
  throw invalidParameters([{ path: "expiresAt", message: "must be in the future" }]);
}
