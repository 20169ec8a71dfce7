import { createApiKey, type KeyGrant, type NewApiKey } from "../../src/data/accounts/api-keys.ts";
import { createId } from "../../src/lib/ids.ts";
import type { TestDatabase } from "./postgres.ts";

export interface TestIam {
  readonly organizationId: string;
  readonly accountId: string;
  readonly addRole: (permissions: readonly string[], organizationId?: string) => Promise<string>;
  readonly addKey: (grant?: Partial<KeyGrant>) => Promise<NewApiKey>;
  readonly addOrganization: () => Promise<string>;
  readonly addAccount: (options?: {
    organizationId?: string;
    status?: "active" | "pending";
  }) => Promise<string>;
  readonly addMembership: (
    accountId: string,
    options?: { organizationId?: string; permissions?: string[]; roleIds?: string[] },
  ) => Promise<string>;
  readonly addIdentity: (
    accountId: string,
    identity: { provider: string; identifier: string; organizationId?: string },
  ) => Promise<void>;
}

/** Uses the organization created at the database's first start. */
export async function createTestIam({ db }: Pick<TestDatabase, "db">): Promise<TestIam> {
  const cluster = await db.selectFrom("cluster").selectAll().executeTakeFirstOrThrow();
  const { organizationId: home, accountId, spaceId } = cluster;
  if (home === null || accountId === null) throw new Error("the database has not been bootstrapped");
  const nowMs = Date.now();
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  return {
    organizationId: home,
    accountId,
    async addRole(permissions, organizationId = home) {
      const id = createId("role", nowMs);
      const row = { id, organizationId, name: id, description: null, permissions: [...permissions] };
      await db
        .insertInto("roles")
        .values({ ...row, ...times })
        .execute();
      return id;
    },
    addKey: (grant = {}) =>
      createApiKey(
        db,
        { organizationId: home, spaceId, accountId, name: "test", permissions: [], ...grant },
        nowMs,
      ),
    async addOrganization() {
      const id = createId("org", nowMs);
      await db
        .insertInto("organizations")
        .values({ id, name: id, iamId: null, tenantId: null, logoAssetId: null, ...times })
        .execute();
      return id;
    },
    async addAccount({ organizationId = home, status = "active" } = {}) {
      const id = createId("acc", nowMs);
      const details = {
        firstName: null,
        lastName: null,
        language: null,
        agentIdentifier: null,
        appUid: null,
        platformIdentityId: null,
        profilePictureAssetId: null,
      };
      const row = { id, organizationId, name: id, isService: false, status, ...details };
      await db
        .insertInto("accounts")
        .values({ ...row, ...times })
        .execute();
      return id;
    },
    async addMembership(account, { organizationId = home, permissions = [], roleIds = [] } = {}) {
      const id = createId("mem", nowMs);
      await db
        .insertInto("memberships")
        .values({ id, accountId: account, organizationId, role: 0, permissions, roleIds, ...times })
        .execute();
      return id;
    },
    async addIdentity(account, { provider, identifier, organizationId = home }) {
      const row = { provider, identifier, organizationId, email: null, phone: null, info: null };
      await db
        .insertInto("identities")
        .values({ id: createId("idn", nowMs), accountId: account, ...row, ...times })
        .execute();
    },
  };
}
