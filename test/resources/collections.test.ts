import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, expectUnknownInside } from "../support/isolated.ts";

let api: TestApi;
let stranger: Call;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
});
afterAll(() => api[Symbol.asyncDispose]());

const make = async (path: string, body: object) => {
  const answer = await api.call("POST", path, body);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};
/** A collection with these fields; its paths. */
async function collection(...fields: object[]) {
  const { id } = await make("/collections", { name: "Things" });
  const at = {
    path: `/collections/${id}`,
    fields: `/collections/${id}/fields`,
    records: `/collections/${id}/records`,
  };
  for (const field of fields) await make(at.fields, field);
  return { id, ...at };
}
const fieldNamed = async (at: { readonly fields: string }, name: string) =>
  (await api.call("GET", at.fields)).body.find((one: { name: string }) => one.name === name);
const paths = ({ body }: { readonly body: { readonly details: readonly { readonly path: string }[] } }) =>
  body.details.map(({ path }) => path);

it("pages 500 records in the order of their making", async () => {
  const at = await collection({ name: "n", kind: "number", required: true });
  for (let n = 0; n < 500; n++) await make(at.records, { values: { n } });
  const read: number[] = [];
  for (let offset = 0; offset < 500; offset += 200) {
    const page = await api.call("GET", `${at.records}?limit=200&offset=${offset}`);
    expect(page.headers.get("x-total-count")).toBe("500");
    for (const { values } of page.body) read.push(values.n);
  }
  expect(read).toEqual(Array.from({ length: 500 }, (_, n) => n));
  const end = await api.call("GET", `${at.records}?offset=500`);
  expect([end.body, end.headers.get("x-total-count")]).toEqual([[], "500"]);
  expect((await api.call("GET", `${at.records}?limit=201`)).status).toBe(400);
});

describe("a record", () => {
  const KINDS: Readonly<Record<string, readonly [fits: unknown, ...not: unknown[]]>> = {
    text: ["a", 1, "x".repeat(65_537)],
    number: [1.5, "1", true],
    boolean: [false, "false", 0],
    date: ["2026-02-28", "2026-02-30", "2026-01-01T00:00:00Z"],
    dateTime: ["2026-01-01T00:00:00.000Z", "2026-01-01", 1],
    email: ["ada@example.com", "ada", "ada@"],
    url: ["https://example.com/a?b", "javascript:alert(1)", "example.com"],
    choice: ["red", "blue", "toString"],
    json: [{ a: [1, null, { b: "c" }] }],
  };
  const fieldOf = (kind: string) => ({
    name: kind,
    kind,
    ...(kind === "choice" && { options: ["red", "green"] }),
  });

  it("has a value of each kind of field, and none that does not fit", async () => {
    const at = await collection(...Object.keys(KINDS).map(fieldOf));
    const values = Object.fromEntries(Object.entries(KINDS).map(([kind, [fits]]) => [kind, fits]));
    const made = await make(at.records, { values });
    expect(made).toEqual({
      ...{ id: expect.stringMatching(/^rec_/), collectionId: at.id, values },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    expect((await api.call("GET", `${at.records}/${made.id}`)).body).toEqual(made);
    for (const [kind, [, ...others]] of Object.entries(KINDS)) {
      for (const other of others) {
        const refused = await api.call("POST", at.records, { values: { [kind]: other } });
        if (refused.body.details?.[0]?.path !== "values") expect(paths(refused)).toEqual([`values.${kind}`]);
        expect(refused.status).toBe(400);
      }
    }
    const times = await make(at.records, { values: { dateTime: "2026-01-01T01:00:00+01:00" } });
    expect(times.values).toMatchObject({ dateTime: "2026-01-01T00:00:00.000Z", text: null, json: null });
  });

  it("is told each field that is unknown, does not fit or is missing", async () => {
    const at = await collection(
      { name: "must", kind: "text", required: true },
      { name: "n", kind: "number" },
    );
    const refused = await api.call("POST", at.records, { values: { n: "x", more: 1, toString: 1 } });
    expect([refused.status, paths(refused)]).toEqual([
      400,
      ["values.more", "values.toString", "values.must", "values.n"],
    ]);
    expect(paths(await api.call("POST", at.records, { values: { must: null } }))).toEqual(["values.must"]);
    expect((await api.call("POST", at.records, { must: "x" })).status).toBe(400);
    expect((await api.call("GET", at.records)).body).toEqual([]);
  });

  it("keeps what a patch does not name, and loses what it makes null", async () => {
    const at = await collection({ name: "a", kind: "text", required: true }, { name: "b", kind: "json" });
    const { id } = await make(at.records, { values: { a: "1", b: { x: 1, y: 2 } } });
    const put = (values: unknown) => api.call("PUT", `${at.records}/${id}`, { values });
    expect((await put({ b: { y: null } })).body.values).toEqual({ a: "1", b: { x: 1 } });
    expect((await put({ b: null })).body.values).toEqual({ a: "1", b: null });
    expect(paths(await put({ a: null, c: 1 }))).toEqual(["values.c", "values.a"]);
    expect((await api.call("DELETE", `${at.records}/${id}`)).body).toEqual({ id });
  });

  it("takes fields of any name, and no other's place", async () => {
    const names = ["__proto__", "constructor", "a.b", "é 💥"];
    const at = await collection(...names.map((name) => ({ name, kind: "number" })));
    const text = `{"values":{"__proto__":1,"constructor":2,"a.b":3,"é 💥":4}}`;
    const answer = await api.call("POST", at.records, text);
    expect(Object.entries(answer.body.values)).toEqual(names.map((name, index) => [name, index + 1]));
    const other = await collection();
    expect((await api.call("GET", `${other.records}/${answer.body.id}`)).status).toBe(404);
    const field = await fieldNamed(at, "a.b");
    expect((await api.call("DELETE", `${other.fields}/${field.id}`)).status).toBe(404);
  });

  it("has a unique value for itself, also where many ask at once", async () => {
    const at = await collection({ name: "key", kind: "text", unique: true });
    const create = (key: string | null) => api.call("POST", at.records, { values: { key } });
    const answers = await Promise.all([1, 2, 3].map(() => create("a")));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const { body: other } = await create("b");
    const put = (key: string | null) => api.call("PUT", `${at.records}/${other.id}`, { values: { key } });
    expect((await put("a")).status).toBe(409);
    expect((await put("b")).status).toBe(200);
    expect((await put("c")).status).toBe(200);
    expect((await create("b")).status).toBe(200);
    for (const status of [200, 200]) expect((await create(null)).status).toBe(status);
    await api.call("DELETE", `${at.records}/${other.id}`);
    expect((await create("c")).status).toBe(200);
  });
});

describe("a field", () => {
  it("has a name that is its own in its collection, and options only as a choice", async () => {
    const at = await collection();
    const create = (body: object) => api.call("POST", at.fields, { name: "f", kind: "text", ...body });
    const answers = await Promise.all([create({}), create({})]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    for (const [body, path] of [
      [{ kind: "other" }, "kind"],
      [{ kind: "choice" }, "options"],
      [{ options: ["a"] }, "options"],
      [{ kind: "choice", options: ["a", "a"] }, "options[1]"],
      [{ kind: "json", unique: true }, "unique"],
      [{ more: 1 }, "more"],
    ] as const) {
      expect(paths(await create({ name: "g", ...body }))).toEqual([path]);
    }
  });

  it("that gets another name keeps its values, and that is deleted loses them", async () => {
    const at = await collection({ name: "a", kind: "text", unique: true }, { name: "b", kind: "json" });
    const { id } = await make(at.records, { values: { a: "1", b: { z: 1, y: [1.5] } } });
    const [a, b] = [await fieldNamed(at, "a"), await fieldNamed(at, "b")];
    await api.call("PUT", `${at.fields}/${b.id}`, { name: "c" });
    const values = async () => (await api.call("GET", `${at.records}/${id}`)).body.values;
    expect(await values()).toEqual({ a: "1", c: { z: 1, y: [1.5] } });
    expect((await api.call("DELETE", `${at.fields}/${a.id}`)).body).toEqual({ id: a.id });
    expect(await values()).toEqual({ c: { z: 1, y: [1.5] } });
    const kept = await api.database.db
      .selectFrom("collectionRecords")
      .select("values")
      .where("id", "=", id)
      .execute();
    expect(kept).toEqual([{ values: { [b.id]: { z: 1, y: [1.5] } } }]);
    await make(at.fields, { name: "a", kind: "number" });
    expect(await values()).toEqual({ c: { z: 1, y: [1.5] }, a: null });
  });

  it("does not change into what records do not fit", async () => {
    const at = await collection({ name: "a", kind: "choice", options: ["x", "y"] });
    const records = [await make(at.records, { values: { a: "x" } }), await make(at.records, { values: {} })];
    const { id } = await fieldNamed(at, "a");
    const put = (patch: object) => api.call("PUT", `${at.fields}/${id}`, patch);
    expect((await put({ kind: "text", options: [] })).status).toBe(409);
    expect((await put({ options: ["y"] })).status).toBe(409);
    expect((await put({ required: true })).status).toBe(409);
    expect((await put({ options: ["x"] })).status).toBe(200);
    expect((await api.call("POST", at.fields, { name: "b", kind: "text", required: true })).status).toBe(409);
    await api.call("PUT", `${at.records}/${records[1].id}`, { values: { a: "x" } });
    expect((await put({ required: true })).status).toBe(200);
    for (const one of records) await api.call("DELETE", `${at.records}/${one.id}`);
    expect((await put({ kind: "text", options: [], unique: true })).status).toBe(200);
  });

  it("becomes unique only where its values are", async () => {
    const at = await collection({ name: "a", kind: "number" });
    const [, second] = [
      await make(at.records, { values: { a: 1 } }),
      await make(at.records, { values: { a: 1 } }),
    ];
    const { id } = await fieldNamed(at, "a");
    const put = (unique: boolean) => api.call("PUT", `${at.fields}/${id}`, { unique });
    expect((await put(true)).status).toBe(409);
    await api.call("PUT", `${at.records}/${second.id}`, { values: { a: 2 } });
    expect((await put(true)).status).toBe(200);
    expect((await api.call("POST", at.records, { values: { a: 1 } })).status).toBe(409);
    expect((await put(false)).status).toBe(200);
    expect((await api.call("POST", at.records, { values: { a: 1 } })).status).toBe(200);
  });
});

describe("a collection", () => {
  it("is its organization's, with all that is in it", async () => {
    const at = await collection({ name: "a", kind: "text" });
    const record = await make(at.records, { values: { a: "x" } });
    await expectHidden(stranger, "/collections", at.id, { name: "theirs" });
    const field = await fieldNamed(at, "a");
    for (const path of [`${at.fields}/${field.id}`, `${at.records}/${record.id}`]) {
      for (const method of ["GET", "PUT", "DELETE"])
        expect((await stranger(method, path, method === "PUT" ? {} : undefined)).status).toBe(404);
    }
    for (const path of [at.fields, at.records]) expect((await stranger("GET", path)).status).toBe(404);
    expect((await stranger("GET", "/collections")).body).toEqual([]);
    const reader = api.as(await api.keyWith("collections.read"));
    expect((await reader("GET", at.records)).status).toBe(200);
    expect((await reader("POST", at.records, { values: {} })).status).toBe(403);
  });

  it("goes with its fields and records, but not while a knowledge base has it", async () => {
    const at = await collection({ name: "a", kind: "text", unique: true });
    await make(at.records, { values: { a: "x" } });
    const base = await make("/knowledge-bases", { name: "kb", collectionId: at.id });
    await expectUnknownInside(stranger, "POST", "/knowledge-bases", at.id, (collectionId) => ({
      name: "kb",
      collectionId,
    }));
    expect((await api.call("DELETE", at.path)).status).toBe(409);
    await api.call("PUT", `/knowledge-bases/${base.id}`, { collectionId: null });
    expect((await api.call("DELETE", at.path)).body).toEqual({ id: at.id });
    expect((await api.call("GET", at.records)).status).toBe(404);
  });
});
