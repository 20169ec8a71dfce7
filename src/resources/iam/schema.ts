import { z } from "zod";
import { id } from "../../http/fields.ts";
import {
  hidden,
  json,
  once,
  orElse,
  readOnly,
  time,
  unstored,
  withAnswer,
  withCreateSchema,
  writeOnly,
} from "../kit/field.ts";
import {
  accountIdInput,
  nameInput,
  opaqueIdInput,
  organizationId,
  textInput,
  textUpTo,
} from "../kit/fields.ts";
import { bounded } from "../kit/free-form.ts";
import { type Inside, shape, type TableOf } from "../kit/shape.ts";
import { permissionsInput, roleIdsInput } from "./iam-grants.ts";
import { permissionSchema } from "./permission-schema.ts";

/**
 * Tables of the identity and access entities.
 *
 * A response contains the requested entity completely. A nested entity has its own fields and permissions. A nested
 * member also has its roles, and a nested group its members. Deeper single entities are null, and deeper lists are
 * omitted.
 */
declare module "../../data/tables.ts" {
  interface Tables {
    roles: TableOf<typeof roleFields>;
    spaces: TableOf<typeof spaceFields>;
    groups: TableOf<typeof groupFields>;
    groupMembers: TableOf<typeof groupMemberFields>;
    memberships: TableOf<typeof membershipFields>;
    organizations: TableOf<typeof organizationFields>;
    accounts: TableOf<typeof accountFields>;
    identities: TableOf<typeof identityFields>;
    apiKeys: TableOf<typeof apiKeyFields>;
  }
}

const INSIDE = { description: "`null` when nested in another entity." };
/** Turns off the default `organizationId` field, which then has no column and appears in no request or response. */
const noColumn = hidden(unstored(z.string()));
const accountId = withAnswer(once(accountIdInput), id("acc"));

const roleFields = {
  name: nameInput,
  description: textUpTo(4_096),
  organizationId,
  /** Sorted names without duplicates. */
  permissions: permissionsInput,
};
export const role = shape({
  prefix: "role",
  fields: roleFields,
  inside: {
    permissions: z
      .record(z.string(), permissionSchema)
      .meta({ description: "The permissions of the role, by name." }),
  },
  meta: { id: "Role", description: "A named set of permissions for API keys and members." },
});

const spaceFields = { name: nameInput.meta({ example: "Production" }), organizationId };
export const space = shape({
  prefix: "spc",
  fields: spaceFields,
  meta: { id: "Space", description: "A part of an organization. Apps are installed in a space." },
});

const groupMemberFields = {
  organizationId: noColumn,
  accountId: readOnly(id("acc")),
  groupId: readOnly(id("grp")),
};
export const groupMember = shape({
  prefix: "gm",
  fields: groupMemberFields,
  meta: { id: "GroupMember", description: "The membership of an account in a group." },
});

const groupFields = {
  name: nameInput.meta({ example: "Support" }),
  organizationId,
  members: unstored(
    z
      .array(z.string())
      .max(1_000)
      .default([])
      .meta({ description: "The ids of the accounts in the group.", example: [] }),
  ),
};
export const group = shape({
  prefix: "grp",
  fields: groupFields,
  inside: { members: z.array(groupMember.entity) },
  meta: { id: "Group", description: "A named set of accounts. A group grants no permissions." },
});

const membershipFields = {
  accountId,
  organizationId,
  role: z
    .int()
    .min(0)
    .max(2_147_483_647)
    .default(0)
    .meta({ description: "A rank that the organization interprets itself. It grants no permissions." }),
  permissions: permissionsInput,
  roleIds: writeOnly(roleIdsInput),
};
export const membership = shape({
  prefix: "mem",
  fields: membershipFields,
  inside: {
    get organization(): z.ZodNullable<Inside<typeof organizationFields>> {
      return organization.part.nullable().meta(INSIDE);
    },
    permissions: z
      .array(permissionSchema)
      .meta({ description: "Permissions in addition to those of the roles." }),
    roles: z.array(role.entity),
  },
  meta: {
    id: "Membership",
    description: "The membership of an account in an organization, with its permissions there.",
  },
});

const organizationFields = {
  organizationId: noColumn,
  name: nameInput.meta({ example: "Example" }),
  iamId: opaqueIdInput,
  tenantId: opaqueIdInput,
  logoAssetId: opaqueIdInput,
  /** Name in the configuration file, for an entity that the file declares. The API cannot change it. */
  declaredName: hidden(z.string().nullable()),
};
export const organization = shape({
  prefix: "org",
  fields: organizationFields,
  inside: {
    groups: z.array(group.entity).optional(),
    members: z.array(membership.entity).optional(),
    roles: z.array(role.entity).optional(),
    spaces: z.array(space.entity).optional(),
  },
  meta: {
    id: "Organization",
    description: "The owner of all other resources. Organizations cannot see each other's resources.",
  },
});

const MAX_INFO_CHARS = 16_384;
const identityFields = {
  accountId,
  organizationId,
  provider: z.string().min(1).max(255).default("org").meta({
    description: "An OIDC issuer, or `org` for names that the organization assigns.",
    example: "org",
  }),
  identifier: z.string().min(1).max(255).meta({
    description: "The account's name at the provider. For an OIDC issuer, the `sub` claim.",
    example: "ada",
  }),
  email: z.email().max(255).nullable().default(null).meta({ example: "ada@example.com" }),
  phone: textInput,
  info: json(
    bounded(z.unknown(), MAX_INFO_CHARS).default(null).meta({ description: "Any JSON value, or `null`." }),
  ),
};
export const identity = shape({
  prefix: "idn",
  fields: identityFields,
  inside: {
    get account(): z.ZodNullable<Inside<typeof accountFields>> {
      return account.part.nullable().meta(INSIDE);
    },
  },
  meta: {
    id: "Identity",
    description: "The name of an account at an OIDC issuer or within the organization.",
  },
});

const accountFields = {
  /** Organization that created the account, which always sees the account. `null` if the account is older than this column. */
  organizationId: hidden(z.string().nullable()),
  name: nameInput.meta({ example: "Ada Lovelace" }),
  firstName: textInput,
  lastName: textInput,
  language: textInput.meta({ example: "en" }),
  agentIdentifier: textInput,
  appUid: textInput,
  platformIdentityId: opaqueIdInput,
  profilePictureAssetId: opaqueIdInput,
  isService: once(
    z.boolean().default(false).meta({ description: "Whether a program uses the account, not a person." }),
  ),
  status: withCreateSchema(
    z
      .enum(["pending", "active", "disabled"])
      .meta({ description: "Only an active account can call the API." }),
    z.enum(["pending", "active"]).default("pending"),
  ),
};
export const account = shape({
  prefix: "acc",
  fields: accountFields,
  inside: {
    identities: z.array(identity.entity).optional(),
    memberships: z
      .array(membership.entity)
      .meta({ description: "The account's membership in the caller's organization." })
      .optional(),
  },
  meta: { id: "Account", description: "A person or a program that calls the API." },
});

const defaultSpaceId = z
  .string()
  .nullable()
  .optional()
  .meta({ description: "A space of the organization. Default: the caller's default space.", example: null });
const apiKeyFields = {
  name: nameInput.meta({ example: "Deployment" }),
  prefix: readOnly(
    z.string().nullable().meta({
      description: "The first characters of the key. `null` for a key that was imported.",
      example: "ik_8d2k5v9q",
    }),
  ),
  organizationId,
  accountId: withAnswer(
    once(
      accountIdInput.optional().meta({
        description:
          "The account that uses the key. Default: a new service account with the name of the key.",
      }),
    ),
    id("acc").meta({ description: "The account that uses the key." }),
  ),
  /** Stored in the column `space_id`. */
  defaultSpaceId: orElse(unstored(defaultSpaceId), ({ caller }) => caller.defaultSpaceId),
  spaceId: hidden(z.string().nullable()),
  roleIds: roleIdsInput,
  permissions: permissionsInput,
  expiresAt: time(
    z.iso.datetime({ offset: true }).nullable().default(null).meta({
      description: "Time from which the key is invalid. `null` if the key does not expire.",
      example: "2030-01-31T09:30:00.000Z",
    }),
  ),
  createdById: orElse(
    readOnly(
      z
        .string()
        .nullable()
        .meta({ description: "The account that created the key. `null` if the operator created it." }),
    ),
    ({ caller }) => caller.accountId,
  ),
  /** SHA-256 of the whole key. */
  hash: hidden(z.custom<Buffer>()),
  revokedAt: hidden(time(z.string().nullable())),
};
export const apiKey = shape({
  prefix: "key",
  fields: apiKeyFields,
  inside: {
    defaultSpaceId: z
      .string()
      .nullable()
      .meta({ description: "The default space for requests that name no space." }),
  },
  meta: {
    id: "ApiKey",
    description: "A bearer token of an organization. The token is shown once, on creation.",
  },
});

export const newApiKeySchema = apiKey.entity
  .extend({ key: z.string().meta({ description: "The bearer token.", example: "ik_8d2k5v9q…" }) })
  .meta({
    id: "NewApiKey",
    description: "An API key with its bearer token. The token cannot be retrieved later.",
  });
