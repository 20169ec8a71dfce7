import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCallers } from "../../src/data/accounts/callers.ts";
import {
  type BootstrapOptions,
  type Bootstrapped,
  bootstrap,
  tellFirstStart,
} from "../../src/data/bootstrap.ts";
import type { NewChannel } from "../../src/data/channels/channels.ts";
import { createStoredChannels } from "../../src/data/channels/stored-channels.ts";
import { type Keyring, openKeyring } from "../../src/data/keyring/keyring.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

const welcome: NewChannel = {
  uid: "main",
  kind: "webhook",
  title: null,
  config: { onInvalid: "quarantine" },
  secrets: {},
  events: [{ type: "received" }],
  retention: { maxAgeSeconds: 60, maxEntries: 10, maxBytes: 1_048_576 },
  state: "active",
};

let database: TestDatabase;
let keyring: Keyring;
beforeEach(async () => {
  database = await createTestDatabase();
  keyring = await openKeyring({ db: database.db, masterKey: Buffer.alloc(32, 1), clock: Date.now });
});
afterEach(() => database[Symbol.asyncDispose]());

const start = (options: Partial<BootstrapOptions> = {}) =>
  bootstrap({ db: database.db, keyring, clock: Date.now, ...options });

const find = (token: string) => createCallers(database).findKey(token);

describe("the first start", () => {
  it("creates an organization, a space and a key with all permissions that is shown once", async () => {
    const { apiKey = "" } = await start();
    expect(apiKey).toMatch(/^ik_[a-z0-9]{40}$/);
    expect(await find(apiKey)).toMatchObject({
      organizationId: expect.stringMatching(/^org_/),
      spaceId: expect.stringMatching(/^spc_/),
      accountId: expect.stringMatching(/^acc_/),
      permissions: new Set(["*"]),
    });
    const names = await database.db.selectFrom("organizations").select("name").execute();
    expect(names).toEqual([{ name: "default" }]);
    expect(await database.db.selectFrom("accounts").select(["isService", "status"]).execute()).toEqual([
      { isService: true, status: "active" },
    ]);
    expect(await start()).toEqual({});
    expect(await find(apiKey)).toBeDefined();
  });

  it("initializes the database once if several gateways start at the same time", async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => start({ welcome })));
    expect(all.filter(({ apiKey }) => apiKey !== undefined)).toHaveLength(1);
    expect(all.filter((made) => made.welcome !== undefined)).toHaveLength(1);
    expect(await database.db.selectFrom("organizations").select("id").execute()).toHaveLength(1);
    expect(await database.db.selectFrom("apps").select("uid").execute()).toEqual([{ uid: "welcome" }]);
  });

  it("accepts a configured key instead of creating one, and stores only its hash", async () => {
    expect((await start({ apiKey: "chosen-by-hand" })).apiKey).toBeUndefined();
    expect(await find("chosen-by-hand")).toMatchObject({ permissions: new Set(["*"]) });
    const rows = await database.db.selectFrom("apiKeys").selectAll().execute();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain("chosen-by");
  });

  it("creates the app `welcome` with an active channel, and returns the channel's topic", async () => {
    const made = (await start({ welcome })).welcome;
    expect(made?.topics).toEqual([
      `events.${made?.organizationId}.apps.app.event_received.${made?.appId}.main.received`,
    ]);
    const live = await createStoredChannels({ db: database.db, keyring }).findById(made?.channelId ?? "");
    expect(live?.channel).toMatchObject({ identity: { uid: "main", appId: made?.appId }, state: "active" });
    expect(await database.db.selectFrom("topics").select("topic").execute()).toEqual([
      { topic: made?.topics[0] },
    ]);
  });
});

describe("reporting the first start", () => {
  /** Reports the first start and returns the reported result. */
  const tell = async (): Promise<Bootstrapped> => {
    let told: Bootstrapped | undefined;
    await tellFirstStart({ db: database.db, keyring }, async (made) => {
      told = made;
    });
    return told ?? {};
  };

  it("reports the API key and the app `welcome` again at later starts until one report succeeds", async () => {
    const made = await start({ welcome });
    const broken = tellFirstStart({ db: database.db, keyring }, () => Promise.reject(new Error("closed")));
    await expect(broken).rejects.toThrow("closed");
    const told = await tell();
    expect(told).toEqual(made);
    expect(await find(told.apiKey ?? "")).toMatchObject({ permissions: new Set(["*"]) });
    expect(await tell()).toEqual({});
    await start({ welcome });
    expect(await tell()).toEqual({});
  });

  it("delivers the result to one caller if several calls run at the same time", async () => {
    await start();
    const release = Promise.withResolvers<void>();
    const told: Bootstrapped[] = [];
    const first = Promise.withResolvers<void>();
    const slow = tellFirstStart({ db: database.db, keyring }, async (made) => {
      first.resolve();
      told.push(made);
      await release.promise;
    });
    await first.promise;
    expect(await tell()).toEqual({});
    release.resolve();
    await slow;
    expect(told).toEqual([{ apiKey: expect.stringMatching(/^ik_/) }]);
  });

  it("reports the result to a waiting call if the current report fails", async () => {
    const made = await start();
    const [begun, failing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const broken = tellFirstStart({ db: database.db, keyring }, () => {
      begun.resolve();
      return failing.promise;
    });
    await begun.promise;
    const waits = Promise.withResolvers<void>();
    let results = 0;
    const db = database.db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        // The second query finds the locked result.
        if (++results === 2) waits.resolve();
        return result;
      },
    });
    const told: Bootstrapped[] = [];
    const waiting = tellFirstStart({ db, keyring }, async (result) => void told.push(result));
    await waits.promise;
    failing.reject(new Error("closed"));
    await expect(broken).rejects.toThrow("closed");
    await waiting;
    expect(told).toEqual([made]);
  });

  it("stores the API key for the report only in encrypted form", async () => {
    const { apiKey = "" } = await start();
    const rows = await database.db.selectFrom("untoldFirstStart").selectAll().execute();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(apiKey.slice(3));
  });
});

describe("a later start", () => {
  it("accepts the same configured key at every start", async () => {
    const { apiKey = "" } = await start();
    await Promise.all([start({ apiKey: "second" }), start({ apiKey: "second" })]);
    const [first, second] = [await find(apiKey), await find("second")];
    expect(second).toMatchObject({ organizationId: first?.organizationId, accountId: first?.accountId });
    expect(await database.db.selectFrom("apiKeys").select("id").execute()).toHaveLength(2);
  });

  it("does not reactivate a configured key that was revoked", async () => {
    await start({ apiKey: "chosen" });
    await database.db.updateTable("apiKeys").set({ revokedAt: new Date() }).execute();
    await start({ apiKey: "chosen" });
    expect(await find("chosen")).toBeUndefined();
  });

  it("creates no second app `welcome`, even if the first was deleted", async () => {
    await start({ welcome });
    for (const table of ["channels", "apps"] as const) await database.db.deleteFrom(table).execute();
    expect(await start({ welcome })).toEqual({});
    expect(await database.db.selectFrom("apps").select("id").execute()).toEqual([]);
  });
});
