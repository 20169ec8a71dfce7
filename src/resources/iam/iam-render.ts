import type { Row } from "../../data/tables.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { timesOf } from "../kit/times.ts";
import type {
  Account,
  ApiKey,
  Group,
  GroupMember,
  Identity,
  Membership,
  Organization,
  Role,
} from "./iam-entities.ts";
import { createPermissionRenderer, type RenderPermission, renderPermission } from "./render-permission.ts";

/** Rows as entities. What is not handed in stays out, as inside another entity: null and `[]`. */
export function renderRole(row: Row<"roles">, permission: RenderPermission = renderPermission): Role {
  const { id, name, description, organizationId, permissions } = row;
  const byName = permissions.map((one) => [one, permission(organizationId, one)] as const);
  return { id, name, description, organizationId, permissions: Object.fromEntries(byName), ...timesOf(row) };
}

export function renderRoles(rows: readonly Row<"roles">[]): Role[] {
  const permission = createPermissionRenderer();
  return rows.map((row) => renderRole(row, permission));
}

export function renderGroupMember(row: Row<"groupMembers">): GroupMember {
  const { id, accountId, groupId } = row;
  return { id, accountId, groupId, ...timesOf(row) };
}

export function renderGroup(row: Row<"groups">, members: Group["members"] = []): Group {
  const { id, name, organizationId } = row;
  return { id, name, organizationId, members, ...timesOf(row) };
}

export function renderMembership(
  row: Row<"memberships">,
  parts: Partial<Pick<Membership, "organization" | "permissions" | "roles">> = {},
): Membership {
  const { id, accountId, organizationId, role } = row;
  const { organization = null, permissions = [], roles = [] } = parts;
  return { id, accountId, organizationId, organization, permissions, role, roles, ...timesOf(row) };
}

export function renderOrganization(
  row: Row<"organizations">,
  parts: Partial<Pick<Organization, "groups" | "members" | "roles" | "spaces">> = {},
): Organization {
  const { id, name, iamId, tenantId, logoAssetId } = row;
  const { groups = [], members = [], roles = [], spaces = [] } = parts;
  return { id, name, iamId, tenantId, logoAssetId, groups, members, roles, spaces, ...timesOf(row) };
}

export function renderAccount(
  row: Row<"accounts">,
  parts: Partial<Pick<Account, "identities" | "memberships">> = {},
): Account {
  const { identities = [], memberships = [] } = parts;
  return {
    id: row.id,
    name: row.name,
    firstName: row.firstName,
    lastName: row.lastName,
    language: row.language,
    agentIdentifier: row.agentIdentifier,
    appUid: row.appUid,
    platformIdentityId: row.platformIdentityId,
    profilePictureAssetId: row.profilePictureAssetId,
    isService: row.isService,
    status: row.status,
    identities,
    memberships,
    ...timesOf(row),
  };
}

export function renderIdentity(row: Row<"identities">, account: Identity["account"] = null): Identity {
  const { id, accountId, organizationId, identifier, email, phone, provider, info } = row;
  return {
    id,
    accountId,
    account,
    organizationId,
    identifier,
    email,
    phone,
    provider,
    info,
    ...timesOf(row),
  };
}

export function renderApiKey(row: Row<"apiKeys">): ApiKey {
  const { id, name, prefix, organizationId, accountId, spaceId, roleIds, permissions, expiresAt } = row;
  return {
    id,
    name,
    prefix,
    organizationId,
    accountId,
    defaultSpaceId: spaceId,
    roleIds,
    permissions,
    expiresAt: expiresAt && formatTimestamp(expiresAt.getTime()),
    ...timesOf(row),
  };
}
