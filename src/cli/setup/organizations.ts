import { createApiKey } from "../../data/accounts/api-keys.ts";
import { recordAudit } from "../../data/accounts/audit.ts";
import { operatorOf } from "../../data/accounts/audit-entry.ts";
import { createOrganization } from "../../data/accounts/organizations.ts";
import type { Trx } from "../../data/database.ts";
import { createId } from "../../lib/ids.ts";
import type { WantedOrganization } from "./check.ts";
import { type Organization, SetUpConflict, type Step } from "./plan.ts";

/** Name that config files use for the organization that exists since the gateway's first start. */
const FIRST_ORGANIZATION = "default";

/**
 * Finds the organization that an earlier apply created under this name, or creates it with a space, a service account and a key
 * with all permissions. The name `default` refers to the organization that the first start creates.
 *
 * Display names are ignored. Members can change them and could otherwise receive another organization's secrets.
 *
 * @returns `token`, the first API key, only if the organization is new
 */
export async function reconcileOrganization(
  trx: Trx,
  { name, spaces: [space = name] }: WantedOrganization,
  nowMs: number,
): Promise<{ readonly id: string; readonly step: Step; readonly token?: string }> {
  const object = `organization ${name}`;
  const found = await findDeclared(trx, name);
  if (found !== undefined) return { id: found, step: { action: "unchanged", object } };

  const made = await createOrganization(trx, { organization: name, space, account: name }, nowMs);
  await trx
    .updateTable("organizations")
    .set({ declaredName: name })
    .where("id", "=", made.organizationId)
    .execute();
  const key = await createApiKey(trx, { ...made, name: "default", permissions: ["*"] }, nowMs);
  const author = operatorOf(made.organizationId);
  const ids = {
    organization: made.organizationId,
    space: made.spaceId,
    account: made.accountId,
    apiKey: key.id,
  };
  for (const entity of ["organization", "space", "account", "apiKey"] as const) {
    await recordAudit(trx, author, { action: "create", entity, id: ids[entity] }, nowMs);
  }
  return { id: made.organizationId, step: { action: "create", object }, token: key.token };
}

async function findDeclared(trx: Trx, name: string): Promise<string | undefined> {
  const declared = await trx
    .selectFrom("organizations")
    .select("id")
    .where("declaredName", "=", name)
    .executeTakeFirst();
  if (declared) return declared.id;
  if (name !== FIRST_ORGANIZATION) return undefined;
  const cluster = await trx.selectFrom("cluster").select("organizationId").executeTakeFirst();
  return cluster?.organizationId ?? undefined;
}

export async function reconcileSpace(
  trx: Trx,
  organization: Organization,
  name: string,
  nowMs: number,
): Promise<Step> {
  const object = `space ${name} in ${organization.name}`;
  const rows = await trx
    .selectFrom("spaces")
    .select("id")
    .where("organizationId", "=", organization.id)
    .where("name", "=", name)
    .limit(2)
    .execute();
  if (rows.length > 1) throw new SetUpConflict("several spaces have this name; rename all but one");
  if (rows.length === 1) return { action: "unchanged", object };
  const id = createId("spc", nowMs);
  const at = new Date(nowMs);
  const row = { id, organizationId: organization.id, name, createdAt: at, updatedAt: at };
  await trx.insertInto("spaces").values(row).execute();
  await recordAudit(trx, operatorOf(organization.id), { action: "create", entity: "space", id }, nowMs);
  return { action: "create", object };
}
