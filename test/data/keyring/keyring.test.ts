import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openKeyring, WrongMasterKeyError } from "../../../src/data/keyring/keyring.ts";
import { createTestDatabase, type TestDatabase } from "../../support/postgres.ts";

const masterKey = Buffer.alloc(32, 7);
const otherKey = Buffer.alloc(32, 8);

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database[Symbol.asyncDispose]());

const open = (key = masterKey) => openKeyring({ db: database.db, masterKey: key, clock: Date.now });

describe("the keyring", () => {
  it.each([
    "channelIdKey",
    "accessTokenKey",
  ] as const)("gives the same %s to all gateways that start at the same time", async (name) => {
    const keyrings = await Promise.all(Array.from({ length: 8 }, () => open()));
    expect(new Set(keyrings.map((keyring) => keyring[name].toString("hex"))).size).toBe(1);
    expect((await open())[name]).toEqual(keyrings[0]?.[name]);
    expect(keyrings[0]?.[name]).toHaveLength(32);
  });

  it("creates a key that is missing in the database of an earlier version", async () => {
    const before = await open();
    await sql`UPDATE cluster SET sealed_access_token_key = NULL`.execute(database.db);
    const after = await open();
    expect(after.channelIdKey).toEqual(before.channelIdKey);
    expect(after.accessTokenKey).not.toEqual(before.accessTokenKey);
    expect((await open()).accessTokenKey).toEqual(after.accessTokenKey);
  });

  it("rejects a master key other than the first one, with an error that names INLET_MASTER_KEY", async () => {
    await open();
    await expect(open(otherKey)).rejects.toThrow(WrongMasterKeyError);
    await expect(open(otherKey)).rejects.toThrow("INLET_MASTER_KEY");
  });

  it("accepts only one of two different master keys that gateways use at the same first start", async () => {
    const outcomes = await Promise.allSettled([open(masterKey), open(otherKey)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  it("stores no key in plain text", async () => {
    const { channelIdKey, accessTokenKey } = await open();
    const stored = JSON.stringify(await database.db.selectFrom("cluster").selectAll().execute());
    for (const key of [channelIdKey, accessTokenKey, masterKey]) {
      for (const encoding of ["hex", "base64", "base64url"] as const) {
        expect(stored).not.toContain(key.toString(encoding));
      }
    }
  });

  it("decrypts a text only for the database row for which the text was encrypted", async () => {
    const { seal, open: unseal } = await open();
    expect(unseal(seal("s3cret", "channels/1/settings"), "channels/1/settings")).toBe("s3cret");
    expect(() => unseal(seal("s3cret", "channels/1/settings"), "channels/2/settings")).toThrow("another row");
  });
});
