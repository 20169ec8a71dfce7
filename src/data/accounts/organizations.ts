import { createId } from "../../lib/ids.ts";
import type { Trx } from "../database.ts";
import { insertAccount } from "./accounts.ts";

/** Ids of a new organization and of the objects created with it. */
export interface NewOrganization {
  readonly organizationId: string;
  readonly spaceId: string;
  /** Service account that owns the first API key. */
  readonly accountId: string;
}

/** Creates an organization with a first space, and a service account as its first member. Does not create an API key for the account. */
export async function createOrganization(
  trx: Trx,
  names: { readonly organization: string; readonly space: string; readonly account: string },
  nowMs: number,
): Promise<NewOrganization> {
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  const organizationId = createId("org", nowMs);
  const spaceId = createId("spc", nowMs);
  await trx
    .insertInto("organizations")
    .values({
      id: organizationId,
      name: names.organization,
      iamId: null,
      tenantId: null,
      logoAssetId: null,
      ...times,
    })
    .execute();
  await trx
    .insertInto("spaces")
    .values({ id: spaceId, organizationId, name: names.space, ...times })
    .execute();
  const { id: accountId } = await insertAccount(
    trx,
    organizationId,
    { name: names.account, isService: true, status: "active" },
    nowMs,
  );
  return { organizationId, spaceId, accountId };
}
