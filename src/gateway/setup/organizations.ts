import { createApiKey } from "../../data/api-keys.ts";
import { recordAudit } from "../../data/audit.ts";
import { operatorOf } from "../../data/audit-entry.ts";
import type { Trx } from "../../data/database.ts";
import { createOrganization } from "../../data/organizations.ts";
import { createId } from "../../lib/ids.ts";
import type { WantedOrganization } from "./check.ts";
import { SetUpConflict, type Step } from "./plan.ts";

export interface ReconciledOrganization {
  readonly id: string;
  readonly step: Step;
  /** The first key of one that was made. */
  readonly token?: string;
}

/** Finds the organization by its name, or makes it with its first space, a service account and a key that may do all. */
export async function reconcileOrganization(
  trx: Trx,
  { name, spaces: [space = name] }: WantedOrganization,
  nowMs: number,
): Promise<ReconciledOrganization> {
  const object = `organization ${name}`;
  const [found, ...others] = await trx
    .selectFrom("organizations")
    .select("id")
    .where("name", "=", name)
    .limit(2)
    .execute();
  if (others.length > 0) throw new SetUpConflict("there are several of that name: rename all but one");
  if (found) return { id: found.id, step: { action: "unchanged", object } };

  const made = await createOrganization(trx, { organization: name, space, account: name }, nowMs);
  const key = await createApiKey(trx, { ...made, name: "default", permissions: ["*"] }, nowMs);
  const author = operatorOf(made.organizationId);
  await recordAudit(
    trx,
    author,
    { action: "create", entity: "organization", id: made.organizationId },
    nowMs,
  );
  await recordAudit(trx, author, { action: "create", entity: "space", id: made.spaceId }, nowMs);
  await recordAudit(trx, author, { action: "create", entity: "account", id: made.accountId }, nowMs);
  await recordAudit(trx, author, { action: "create", entity: "apiKey", id: key.id }, nowMs);
  return { id: made.organizationId, step: { action: "create", object }, token: key.token };
}

/** Finds the space by its name, or makes it. */
export async function reconcileSpace(
  trx: Trx,
  organization: { readonly id: string; readonly name: string },
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
  if (rows.length > 1) throw new SetUpConflict("there are several of that name: rename all but one");
  if (rows.length === 1) return { action: "unchanged", object };
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  const id = createId("spc", nowMs);
  await trx
    .insertInto("spaces")
    .values({ id, organizationId: organization.id, name, ...times })
    .execute();
  await recordAudit(trx, operatorOf(organization.id), { action: "create", entity: "space", id }, nowMs);
  return { action: "create", object };
}
