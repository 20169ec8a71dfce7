import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createCodeStore } from "../../src/data/schema-code.ts";
import { type CodeStore, startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { createLog } from "../../src/log.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const { signal } = new AbortController();
const ASKER = { lane: "a" };
const SCHEMA = { type: "object", required: ["a"], properties: { a: { type: "integer" } } };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(() => database.db.deleteFrom("schemaCode").execute());

const rows = () => database.db.selectFrom("schemaCode").selectAll().execute();

/** Simulates a gateway that needs the schema. Returns whether it had to compile it. */
async function live(masterKey = "one") {
  const store = createCodeStore({
    db: database.db,
    macKey: Buffer.from(masterKey),
    clock: Date.now,
    log: createLog({ level: "silent" }),
  });
  const generated: string[] = [];
  const codeStore: CodeStore = {
    find: store.find,
    keep: (digest, code) => {
      generated.push(digest);
      store.keep(digest, code);
    },
  };
  await using compiler = startSchemaCompiler({ codeStore });
  const compiled = await compiler.compile({ ...SCHEMA }, { signal, lane: "a" });
  if (!compiled.ok) throw new Error("the schema does not compile");
  const verdicts = [{ a: 1 }, {}].map((value) => compiled.value.validate(value, ASKER));
  const macs = async () => (await rows()).map(({ mac }) => mac.toString("hex"));
  return { isGenerated: generated.length > 0, verdicts, macs };
}

const RIGHT = [undefined, { path: "", message: "must have required property 'a'" }];

test("a restarted gateway loads the stored code of a compiled schema instead of compiling the schema again", async () => {
  const first = await live();
  expect(first).toMatchObject({ isGenerated: true, verdicts: RIGHT });
  await until(async () => (await rows()).length === 1);
  expect(await live()).toMatchObject({ isGenerated: false, verdicts: RIGHT });
});

test("the gateway does not run stored validator code that was modified in the database", async () => {
  await live();
  await until(async () => (await rows()).length === 1);
  const code = gzipSync("globalThis.intruder = true; module.exports = () => true;");
  await database.db.updateTable("schemaCode").set({ code, bytes: code.length }).execute();
  expect(await live()).toMatchObject({ isGenerated: true, verdicts: RIGHT });
  expect(globalThis).not.toHaveProperty("intruder");
});

test("the gateway does not run validator code if its stored properties were modified in the database", async () => {
  await live();
  await until(async () => (await rows()).length === 1);
  const [kept] = await rows();
  await database.db
    .updateTable("schemaCode")
    .set({ cost: (kept?.cost ?? 0) + 1 })
    .execute();
  expect((await live()).isGenerated).toBe(true);
});

test("the gateway compiles a schema again if the code was stored under another master key", async () => {
  const before = await live("one");
  await until(async () => (await rows()).length === 1);
  const [old] = await before.macs();
  const after = await live("two");
  expect(after).toMatchObject({ isGenerated: true, verdicts: RIGHT });
  await until(async () => (await after.macs())[0] !== old);
  expect(await live("two")).toMatchObject({ isGenerated: false });
});
