import { insertAccount } from "../../../data/accounts/accounts.ts";
import { createApiKey } from "../../../data/accounts/api-keys.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { recordChange } from "../../../data/changes.ts";
import type { Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import { requireGrantable } from "../../../http/authorize.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { invalidParameters, notFound } from "../../../http/problem.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { requireAccounts } from "../../kit/account-scope.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import type { ApiKey, NewApiKey } from "../iam-entities.ts";
import { grant, type IamDeps, permissionsOfGrant } from "../iam-grants.ts";
import { renderApiKey } from "../iam-render.ts";
import { type ApiKeyInput, apiKeyContent } from "./schema.ts";

const rows = ownedRows("apiKeys", { prefix: "key", entity: "apiKey", words: "API key", access: true });
const spaceRows = ownedRows("spaces", { prefix: "spc", entity: "space" });

/** A key that is revoked is kept, so that it is never taken again; nobody sees it. */
const unrevoked = (row: Row<"apiKeys">): Row<"apiKeys"> => {
  if (row.revokedAt !== null) throw notFound("API key");
  return row;
};

export const getApiKey = async ({ db }: IamDeps, caller: Caller, id: string): Promise<ApiKey> =>
  renderApiKey(unrevoked(await rows.get(db, caller, id)));

export async function listApiKeys(
  { db }: IamDeps,
  { organizationId }: Caller,
  page: Page,
): Promise<Listed<ApiKey>> {
  const all = db
    .selectFrom("apiKeys")
    .where("organizationId", "=", organizationId)
    .where("revokedAt", "is", null);
  return mapPage(await listPage(all.selectAll(), page), renderApiKey);
}

/** @throws ApiError 400, 403 (see `grant`), 404 for account, roles and space */
export async function issueApiKey(deps: IamDeps, caller: Caller, input: ApiKeyInput): Promise<NewApiKey> {
  const { db, clock } = deps;
  const expiresAt = expiryOf(input.expiresAt, clock());
  return db.transaction().execute(async (trx) => {
    const granted = await grant(trx, deps, caller, input);
    const accountId = await accountOf(trx, caller, input, clock());
    const spaceId = input.defaultSpaceId === undefined ? caller.defaultSpaceId : input.defaultSpaceId;
    await requireSpace(trx, caller, spaceId);
    const { organizationId } = caller;
    const key = { organizationId, accountId, spaceId, name: input.name, expiresAt, ...granted };
    const { id, token } = await createApiKey(trx, key, clock());
    await recordAudit(trx, caller, { action: "create", entity: "apiKey", id }, clock());
    await recordChange(trx, { kind: "access", key: organizationId });
    return { ...renderApiKey(await rows.get(trx, caller, id)), key: token };
  });
}

/** @throws ApiError 400, 403 (see `grant`; a later expiry grants all anew), 404 for the key, roles and space */
export async function updateApiKey(
  deps: IamDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<ApiKey> {
  return deps.db.transaction().execute(async (trx) => {
    const before = unrevoked(await rows.lock(trx, caller, id));
    const after = applyPatch(apiKeyContent, contentOf(before), patch);
    const expires = "expiresAt" in patch;
    const expiresAt = expires ? expiryOf(after.expiresAt, deps.clock()) : before.expiresAt;
    const granted = await grant(trx, deps, caller, after, before);
    if (isLater(expiresAt, before.expiresAt)) {
      requireGrantable(caller, await permissionsOfGrant(trx, caller, granted));
    }
    if (after.defaultSpaceId !== before.spaceId) await requireSpace(trx, caller, after.defaultSpaceId);
    const content = { name: after.name, spaceId: after.defaultSpaceId, expiresAt, ...granted };
    return renderApiKey(await rows.update(trx, caller, before, content, deps.clock()));
  });
}

/** Ends the key for good. It lets go of its roles, which can then be deleted. */
export async function revokeApiKey({ db, clock }: IamDeps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    unrevoked(await rows.lock(trx, caller, id));
    const now = new Date(clock());
    await trx
      .updateTable("apiKeys")
      .set({ revokedAt: now, updatedAt: now, permissions: [], roleIds: [] })
      .where("id", "=", id)
      .execute();
    await recordAudit(trx, caller, { action: "revoke", entity: "apiKey", id }, clock());
    await recordChange(trx, { kind: "access", key: caller.organizationId });
  });
}

async function accountOf(
  trx: Trx,
  caller: Caller,
  { accountId, name }: ApiKeyInput,
  nowMs: number,
): Promise<string> {
  if (accountId !== undefined) {
    await requireAccounts(trx, caller, [accountId]);
    return accountId;
  }
  const account = { name, isService: true, status: "active" } as const;
  const { id } = await insertAccount(trx, caller.organizationId, account, nowMs);
  await recordAudit(trx, caller, { action: "create", entity: "account", id }, nowMs);
  return id;
}

async function requireSpace(trx: Trx, caller: Caller, id: string | null): Promise<void> {
  if (id !== null) await spaceRows.lock(trx, caller, id);
}

/** @throws ApiError 400 where it is over before it begins */
function expiryOf(text: string | null, nowMs: number): Date | null {
  if (text === null) return null;
  const expiresAt = new Date(text);
  if (expiresAt.getTime() > nowMs) return expiresAt;
  throw invalidParameters([{ path: "expiresAt", message: "must be in the future" }]);
}

const isLater = (expiresAt: Date | null, before: Date | null): boolean =>
  before !== null && (expiresAt === null || expiresAt > before);

const contentOf = ({ name, spaceId, permissions, roleIds, expiresAt }: Row<"apiKeys">) => ({
  name,
  defaultSpaceId: spaceId,
  permissions,
  roleIds,
  expiresAt: expiresAt && formatTimestamp(expiresAt.getTime()),
});
