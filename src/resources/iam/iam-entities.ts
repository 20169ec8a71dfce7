import { z } from "zod";
import { id, type Shown } from "../../http/fields.ts";
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
  times,
} from "../kit/fields.ts";
import { bounded } from "../kit/free-form.ts";
import { type EntityOf, type Inside, shape, type TableOf } from "../kit/shape.ts";
import { permissionsInput, roleIdsInput } from "./iam-grants.ts";

/**
 * Identity and access, as it is written, stored and answered. The entity that is asked for is complete; those inside it carry
 * their own fields, their permissions, a member its roles and a group its members; of what would follow one is null, many are absent.
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

const INSIDE = { description: "null inside another entity" };
/** Those of one organization that do not name it themselves. */
const noColumn = hidden(unstored(z.string()));
const accountId = withAnswer(once(accountIdInput), id("acc"));

export const permissionSchema = z
  .object({
    id: id("perm"),
    name: z.string().meta({ example: "apps.read" }),
    description: z.string(),
    organizationId: id("org"),
    ...times,
  })
  .meta({
    id: "Permission",
    description: "What may be done: the first noun of a path, `.read` or `.write`.",
  });
export type Permission = Shown<z.output<typeof permissionSchema>>;

const roleFields = {
  name: nameInput,
  description: textUpTo(4_096),
  organizationId,
  /** Names, each once, in order. */
  permissions: permissionsInput,
};
export const role = shape({
  prefix: "role",
  fields: roleFields,
  inside: {
    permissions: z
      .record(z.string(), permissionSchema)
      .meta({ description: "Its permissions by their names." }),
  },
  meta: { id: "Role", description: "Permissions under a name, to be given to API keys and members." },
});

const spaceFields = { name: nameInput.meta({ example: "Production" }), organizationId };
export const space = shape({
  prefix: "spc",
  fields: spaceFields,
  meta: { id: "Space", description: "A part of an organization that apps are installed in." },
});

const groupMemberFields = {
  organizationId: noColumn,
  accountId: readOnly(id("acc")),
  groupId: readOnly(id("grp")),
};
export const groupMember = shape({
  prefix: "gm",
  fields: groupMemberFields,
  meta: { id: "GroupMember", description: "That an account belongs to a group." },
});

const groupFields = {
  name: nameInput.meta({ example: "Support" }),
  organizationId,
  members: unstored(
    z
      .array(z.string())
      .max(1_000)
      .default([])
      .meta({ description: "The ids of the accounts in it.", example: [] }),
  ),
};
export const group = shape({
  prefix: "grp",
  fields: groupFields,
  inside: { members: z.array(groupMember.entity) },
  meta: { id: "Group", description: "Accounts under a name. It grants nothing." },
});

export const membershipFields = {
  accountId,
  organizationId,
  role: z
    .int()
    .min(0)
    .max(2_147_483_647)
    .default(0)
    .meta({ description: "A rank among the members, the organization's to read. It grants nothing." }),
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
    permissions: z.array(permissionSchema).meta({ description: "Held beside those of the roles." }),
    roles: z.array(role.entity),
  },
  meta: {
    id: "Membership",
    description: "That an account belongs to an organization, and what it may do there.",
  },
});

const organizationFields = {
  organizationId: noColumn,
  name: nameInput.meta({ example: "Example" }),
  iamId: opaqueIdInput,
  tenantId: opaqueIdInput,
  logoAssetId: opaqueIdInput,
  /** Its name in a declared set-up, which alone writes it. */
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
    description: "Whose everything else is: nothing is seen across organizations.",
  },
});

const MAX_INFO_CHARS = 16_384;
const identityFields = {
  accountId,
  organizationId,
  provider: z
    .string()
    .min(1)
    .max(255)
    .default("org")
    .meta({ description: "An OIDC issuer, or `org`: the organization's own naming.", example: "org" }),
  identifier: z
    .string()
    .min(1)
    .max(255)
    .meta({ description: "Who it is to the provider: an OIDC issuer's `sub`.", example: "ada" }),
  email: z.email().max(255).nullable().default(null).meta({ example: "ada@example.com" }),
  phone: textInput,
  info: json(bounded(z.unknown(), MAX_INFO_CHARS).default(null).meta({ description: "Anything, or null." })),
};
export const identity = shape({
  prefix: "idn",
  fields: identityFields,
  inside: {
    get account(): z.ZodNullable<Inside<typeof accountFields>> {
      return account.part.nullable().meta(INSIDE);
    },
  },
  meta: { id: "Identity", description: "Who an account is to somebody else." },
});

const accountFields = {
  /** Who made it, and sees it also where it is no member; null: made before that was kept. */
  organizationId: hidden(z.string().nullable()),
  name: nameInput.meta({ example: "Ada Lovelace" }),
  firstName: textInput,
  lastName: textInput,
  language: textInput.meta({ example: "en" }),
  agentIdentifier: textInput,
  appUid: textInput,
  platformIdentityId: opaqueIdInput,
  profilePictureAssetId: opaqueIdInput,
  isService: once(z.boolean().default(false).meta({ description: "A program's, not a person's." })),
  status: withCreateSchema(
    z.enum(["pending", "active", "disabled"]).meta({ description: "Only an active account may call." }),
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
      .meta({ description: "Its membership of the caller's organization." })
      .optional(),
  },
  meta: { id: "Account", description: "Who calls: a person, or a program." },
});

const defaultSpaceId = z
  .string()
  .nullable()
  .optional()
  .meta({ description: "A space of the organization. Default: the caller's.", example: null });
export const apiKeyFields = {
  name: nameInput.meta({ example: "Deployment" }),
  prefix: readOnly(
    z.string().nullable().meta({
      description: "How the key begins; null for one made elsewhere.",
      example: "ik_8d2k5v9q",
    }),
  ),
  organizationId,
  accountId: withAnswer(
    once(
      accountIdInput
        .optional()
        .meta({ description: "Who calls with it. Default: a new service account of the key's name." }),
    ),
    id("acc").meta({ description: "Who calls with it." }),
  ),
  /** It stands in the column `space_id`. */
  defaultSpaceId: orElse(unstored(defaultSpaceId), ({ caller }) => caller.defaultSpaceId),
  spaceId: hidden(z.string().nullable()),
  roleIds: roleIdsInput,
  permissions: permissionsInput,
  expiresAt: time(
    z.iso
      .datetime({ offset: true })
      .nullable()
      .default(null)
      .meta({ description: "From then on it lets nobody in.", example: "2030-01-31T09:30:00.000Z" }),
  ),
  createdById: orElse(
    readOnly(
      z.string().nullable().meta({ description: "The account that has made it; null: the operator." }),
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
    defaultSpaceId: z.string().nullable().meta({ description: "Where what names no space belongs." }),
  },
  meta: { id: "ApiKey", description: "A bearer token of an organization. The key itself is shown once." },
});

export const newApiKeySchema = apiKey.entity
  .extend({ key: z.string().meta({ description: "The bearer token.", example: "ik_8d2k5v9q…" }) })
  .meta({ id: "NewApiKey", description: "An API key with the token, which is never shown again." });
export type NewApiKey = Shown<z.output<typeof newApiKeySchema>>;
export type Organization = EntityOf<typeof organization>;
