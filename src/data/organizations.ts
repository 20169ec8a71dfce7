import { createId } from "../lib/ids.ts";
import type { Trx } from "./database.ts";

/** What a new organization starts with. */
export interface NewOrganization {
  readonly organizationId: string;
  readonly spaceId: string;
  /** The service account that its first key belongs to. */
  readonly accountId: string;
}

/** Makes an organization, its first space and a service account, which has no key yet. */
export async function createOrganization(
  trx: Trx,
  names: { readonly organization: string; readonly space: string; readonly account: string },
  nowMs: number,
): Promise<NewOrganization> {
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  const organizationId = createId("org", nowMs);
  const spaceId = createId("spc", nowMs);
  const accountId = createId("acc", nowMs);
  await trx
    .insertInto("organizations")
    .values({ id: organizationId, name: names.organization, ...times })
    .execute();
  await trx
    .insertInto("spaces")
    .values({ id: spaceId, organizationId, name: names.space, ...times })
    .execute();
  await trx
    .insertInto("accounts")
    .values({ id: accountId, name: names.account, isService: true, status: "active", ...times })
    .execute();
  return { organizationId, spaceId, accountId };
}
