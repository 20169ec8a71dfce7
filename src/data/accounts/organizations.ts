import { createId } from "../../lib/ids.ts";
import { inPages } from "../../lib/pages.ts";
import type { Queryable, Trx } from "../database.ts";
import { insertAccount } from "./accounts.ts";

export interface NewOrganization {
  readonly organizationId: string;
  readonly spaceId: string;
  readonly accountId: string;
}

/** Creates an organization with one space. Its first member is a service account, which has no API key yet. */
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

const PAGE = 500;

/** Yields the ids of all organizations in pages. */
export const pageOrganizations = (db: Queryable) =>
  inPages("id", "", PAGE, (after, limit) =>
    db.selectFrom("organizations").select("id").where("id", ">", after).orderBy("id").limit(limit).execute(),
  );
