import { z } from "zod";
import { id, type Shown, timestamp } from "../../http/fields.ts";
import { nameInput, organizationId } from "../kit/fields.ts";
import { shape, type TableOf } from "../kit/shape.ts";
import { times } from "../kit/times.ts";

/**
 * The entities of identity and access, as the API answers them. The one that is asked for is complete; those inside it carry
 * their scalar fields (a role its permissions too), with null and `[]` where entities would follow.
 */
const INSIDE = "null inside another entity";
const text = z.string().nullable();
/** An entity inside another: only what it has itself is promised; so no type goes round in a circle. */
type Inside<Scalars extends z.ZodRawShape> = z.ZodType<z.output<z.ZodObject<Scalars>> | null>;
/** An id of something that Inlet does not keep: stored as given. */
const opaque = z.string().nullable();

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

export const roleSchema = z
  .object({
    id: id("role"),
    name: z.string().meta({ example: "Operators" }),
    description: text,
    organizationId: id("org"),
    permissions: z
      .record(z.string(), permissionSchema)
      .meta({ description: "Its permissions by their names." }),
    ...times,
  })
  .meta({ id: "Role", description: "Permissions under a name, to be given to API keys and members." });
export type Role = Shown<z.output<typeof roleSchema>>;

declare module "../../data/tables.ts" {
  interface Tables {
    spaces: TableOf<typeof spaceFields>;
  }
}
const spaceFields = { name: nameInput.meta({ example: "Production" }), organizationId };
export const space = shape({
  prefix: "spc",
  fields: spaceFields,
  meta: { id: "Space", description: "A part of an organization that apps are installed in." },
});

const groupMemberSchema = z
  .object({ id: id("gm"), accountId: id("acc"), groupId: id("grp"), ...times })
  .meta({ id: "GroupMember", description: "That an account belongs to a group." });
export type GroupMember = Shown<z.output<typeof groupMemberSchema>>;

export const groupSchema = z
  .object({
    id: id("grp"),
    name: z.string(),
    organizationId: id("org"),
    members: z.array(groupMemberSchema),
    ...times,
  })
  .meta({ id: "Group", description: "Accounts under a name. It grants nothing." });
export type Group = Shown<z.output<typeof groupSchema>>;

const organizationScalars = {
  id: id("org"),
  name: z.string(),
  iamId: opaque,
  tenantId: opaque,
  logoAssetId: opaque,
  ...times,
};

export const membershipSchema = z
  .object({
    id: id("mem"),
    accountId: id("acc"),
    organizationId: id("org"),
    get organization(): Inside<typeof organizationScalars> {
      return organizationSchema.nullable().meta({ description: INSIDE });
    },
    permissions: z.array(permissionSchema).meta({ description: "Held beside those of the roles." }),
    role: z
      .int()
      .meta({ description: "A rank among the members, the organization's to read. It grants nothing." }),
    roles: z.array(roleSchema),
    ...times,
  })
  .meta({
    id: "Membership",
    description: "That an account belongs to an organization, and what it may do there.",
  });
export type Membership = Shown<z.output<typeof membershipSchema>>;

export const organizationSchema = z
  .object({
    ...organizationScalars,
    groups: z.array(groupSchema),
    members: z.array(membershipSchema),
    roles: z.array(roleSchema),
    spaces: z.array(space.entity),
  })
  .meta({
    id: "Organization",
    description: "Whose everything else is: nothing is seen across organizations.",
  });
export type Organization = Shown<z.output<typeof organizationSchema>>;

export const ACCOUNT_STATUSES = ["pending", "active", "disabled"] as const;

const accountScalars = {
  id: id("acc"),
  name: z.string(),
  firstName: text,
  lastName: text,
  language: text.meta({ example: "en" }),
  agentIdentifier: text,
  appUid: text,
  platformIdentityId: opaque,
  profilePictureAssetId: opaque,
  isService: z.boolean().meta({ description: "A program's, not a person's." }),
  status: z.enum(ACCOUNT_STATUSES).meta({ description: "Only an active account may call." }),
  ...times,
};

export const identitySchema = z
  .object({
    id: id("idn"),
    accountId: id("acc"),
    get account(): Inside<typeof accountScalars> {
      return accountSchema.nullable().meta({ description: INSIDE });
    },
    organizationId: id("org"),
    identifier: z.string().meta({ description: "An OIDC issuer's `sub`." }),
    email: text.meta({ example: "ada@example.com" }),
    phone: text,
    provider: z.string().meta({ description: "An OIDC issuer, or `org`.", example: "org" }),
    info: z.unknown().meta({ description: "Anything, or null." }),
    ...times,
  })
  .meta({
    id: "Identity",
    description: "Who an account is to somebody else.",
  });
export type Identity = Shown<z.output<typeof identitySchema>>;

export const accountSchema = z
  .object({
    ...accountScalars,
    identities: z.array(identitySchema),
    memberships: z
      .array(membershipSchema)
      .meta({ description: "Its membership of the caller's organization." }),
  })
  .meta({
    id: "Account",
    description: "Who calls: a person, or a program.",
  });
export type Account = Shown<z.output<typeof accountSchema>>;

export const apiKeySchema = z
  .object({
    id: id("key"),
    name: z.string(),
    prefix: text.meta({
      description: "How the key begins; null for one made elsewhere.",
      example: "ik_8d2k5v9q",
    }),
    organizationId: id("org"),
    accountId: id("acc").meta({ description: "Who calls with it." }),
    defaultSpaceId: text.meta({ description: "Where what names no space belongs." }),
    roleIds: z.array(z.string()),
    permissions: z.array(z.string()).meta({ description: "Names, held beside those of the roles." }),
    expiresAt: timestamp.nullable(),
    ...times,
  })
  .meta({ id: "ApiKey", description: "A bearer token of an organization. The key itself is shown once." });
export type ApiKey = Shown<z.output<typeof apiKeySchema>>;

export const newApiKeySchema = apiKeySchema
  .extend({ key: z.string().meta({ description: "The bearer token.", example: "ik_8d2k5v9q…" }) })
  .meta({ id: "NewApiKey", description: "An API key with the token, which is never shown again." });
export type NewApiKey = Shown<z.output<typeof newApiKeySchema>>;
