import { createApiKey } from "../../../data/accounts/api-keys.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { createOrganization } from "../../../data/accounts/organizations.ts";
import { recordChange } from "../../../data/changes.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import { ALL_PERMISSIONS } from "../../../http/authorize.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { notFound } from "../../../http/problem.ts";
import { changedFields } from "../../../lib/changed-fields.ts";
import { applyPatch } from "../../kit/merge.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import { type NewApiKey, type Organization, space } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import {
  renderApiKey,
  renderGroup,
  renderMembership,
  renderOrganization,
  renderRoles,
} from "../iam-render.ts";
import { type OrganizationInput, organizationInput } from "./schema.ts";

type Deps = Pick<IamDeps, "db" | "clock">;

/** There is one: the caller's own. */
export async function listOrganizations(
  deps: Deps,
  caller: Caller,
  { offset }: Page,
): Promise<Listed<Organization>> {
  return { items: offset > 0 ? [] : [await getOrganization(deps, caller, caller.organizationId)], total: 1 };
}

/** @throws ApiError 404 where it is not the caller's */
export async function getOrganization({ db }: Deps, caller: Caller, id: string): Promise<Organization> {
  const row = await select(db, caller, id).executeTakeFirst();
  if (!row) throw notFound("organization");
  return complete(db, row);
}

/** With a space, a service account, and a key that may do all in it. */
export async function foundOrganization(
  { db, clock }: Deps,
  caller: Caller,
  input: OrganizationInput,
): Promise<Organization & { readonly apiKey: NewApiKey }> {
  return db.transaction().execute(async (trx) => {
    const names = { organization: input.name, space: "default", account: "default" };
    const made = await createOrganization(trx, names, clock());
    const { organizationId } = made;
    const row = await trx
      .updateTable("organizations")
      .set(input)
      .where("id", "=", organizationId)
      .returningAll()
      .executeTakeFirstOrThrow();
    const grant = { ...made, name: "default", permissions: [ALL_PERMISSIONS] };
    const { id, token } = await createApiKey(trx, grant, clock());
    const key = await trx.selectFrom("apiKeys").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
    await recordAudit(trx, caller, { action: "create", entity: "organization", id: organizationId }, clock());
    return { ...(await complete(trx, row)), apiKey: { ...renderApiKey(key), key: token } };
  });
}

/** @throws ApiError 404 where it is not the caller's */
export async function updateOrganization(
  { db, clock }: Deps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Organization> {
  return db.transaction().execute(async (trx) => {
    const { name, iamId, tenantId, logoAssetId } = await lock(trx, caller, id);
    const before = { name, iamId, tenantId, logoAssetId };
    const after = applyPatch(organizationInput, before, patch);
    const row = await trx
      .updateTable("organizations")
      .set({ ...after, updatedAt: new Date(clock()) })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
    const fields = changedFields(before, after);
    await recordAudit(trx, caller, { action: "update", entity: "organization", id, fields }, clock());
    return complete(trx, row);
  });
}

/** Its keys, members, roles, groups and spaces go with it. @throws ApiError 404, and 409 while there is more in it */
export async function deleteOrganization({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await lock(trx, caller, id);
    for (const table of [
      "apiKeys",
      "identities",
      "groups",
      "memberships",
      "accounts",
      "roles",
      "spaces",
    ] as const) {
      await trx.deleteFrom(table).where("organizationId", "=", id).execute();
    }
    await trx.deleteFrom("organizations").where("id", "=", id).execute();
    await recordAudit(trx, caller, { action: "delete", entity: "organization", id }, clock());
    await recordChange(trx, { kind: "access", key: id });
  });
  await refuseInUse(
    "The organization has something in it, such as apps or blueprints, or is the one of the first start.",
    deleted,
  );
}

const select = (db: Queryable, { organizationId }: Caller, id: string) =>
  db
    .selectFrom("organizations")
    .selectAll()
    .where("id", "=", id === organizationId ? id : "");

async function lock(trx: Trx, caller: Caller, id: string): Promise<Row<"organizations">> {
  const row = await select(trx, caller, id).forUpdate().executeTakeFirst();
  if (!row) throw notFound("organization");
  return row;
}

async function complete(db: Queryable, row: Row<"organizations">): Promise<Organization> {
  const all = <T extends "groups" | "memberships" | "roles" | "spaces">(table: T) =>
    db
      .selectFrom(table as "spaces")
      .selectAll()
      .where("organizationId", "=", row.id)
      .orderBy("createdAt")
      .orderBy("id")
      .execute() as unknown as Promise<Row<T>[]>;
  return renderOrganization(row, {
    groups: (await all("groups")).map((group) => renderGroup(group)),
    members: (await all("memberships")).map((one) => renderMembership(one)),
    roles: renderRoles(await all("roles")),
    spaces: (await all("spaces")).map((one) => space.render(one)),
  });
}
