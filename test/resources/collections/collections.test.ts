import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

/** Creates a collection with these fields. Returns its id and the paths of its resources. */
async function collection(...fields: object[]) {
  const { id } = await api.call.post("/collections", { name: "Things" });
  const at = {
    path: `/collections/${id}`,
    fields: `/collections/${id}/fields`,
    records: `/collections/${id}/records`,
  };
  for (const field of fields) await api.call.post(at.fields, field);
  return { id, ...at };
}
const fieldNamed = async (at: { readonly fields: string }, name: string) =>
  (await api.call.get(at.fields)).find((one: { name: string }) => one.name === name);

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

  it("accepts a value for each kind of field, and rejects a value of the wrong type", async () => {
    const at = await collection(...Object.keys(KINDS).map(fieldOf));
    const values = Object.fromEntries(Object.entries(KINDS).map(([kind, [fits]]) => [kind, fits]));
    const made = await api.call.post(at.records, { values });
    expect(made).toEqual({
      id: expect.stringMatching(/^rec_/),
      collectionId: at.id,
      values,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect(await api.call.get(`${at.records}/${made.id}`)).toEqual(made);
    for (const [kind, [, ...others]] of Object.entries(KINDS)) {
      for (const other of others) {
        const refusal = await api.call.expectRejection("POST", at.records, { values: { [kind]: other } });
        // A text over the size limit of a record is reported for the whole record.
        const path = kind === "text" && other !== 1 ? "values" : `values.${kind}`;
        expect(refusal).toMatchObject({ status: 400, paths: [path] });
      }
    }
    const times = await api.call.post(at.records, { values: { dateTime: "2026-01-01T01:00:00+01:00" } });
    expect(times.values).toMatchObject({ dateTime: "2026-01-01T00:00:00.000Z", text: null, json: null });
  });

  it("is rejected if a value is unknown, missing or invalid, and the error names the path of each such value", async () => {
    const at = await collection(
      { name: "must", kind: "text", required: true },
      { name: "n", kind: "number" },
    );
    const refusal = (values: object) => api.call.expectRejection("POST", at.records, { values });
    expect(await refusal({ n: "x", more: 1, toString: 1 })).toMatchObject({
      status: 400,
      paths: ["values.more", "values.toString", "values.must", "values.n"],
    });
    expect(await refusal({ must: null })).toMatchObject({ status: 400, paths: ["values.must"] });
    expect(await api.call.get(at.records)).toEqual([]);
  });

  it("is changed by replacing all of its values, so that omitted fields are cleared", async () => {
    const at = await collection({ name: "a", kind: "text", required: true }, { name: "b", kind: "json" });
    const { id } = await api.call.post(at.records, { values: { a: "1", b: { x: 1, y: 2 } } });
    const path = `${at.records}/${id}`;
    const put = async (values: object) => (await api.call.put(path, { values })).values;
    expect(await put({ a: "1", b: { y: null } })).toEqual({ a: "1", b: { y: null } });
    expect(await put({ a: "2" })).toEqual({ a: "2", b: null });
    expect((await api.call.put(path, {})).values).toEqual({ a: "2", b: null });
    const refusal = await api.call.expectRejection("PUT", path, { values: { c: 1 } });
    expect(refusal).toMatchObject({ status: 400, paths: ["values.c", "values.a"] });
    expect(await api.call.delete(path)).toEqual({ id });
  });

  it("accepts fields of any name, including __proto__", async () => {
    const names = ["__proto__", "constructor", "a.b", "é 💥"];
    const at = await collection(...names.map((name) => ({ name, kind: "number" })));
    const text = `{"values":{"__proto__":1,"constructor":2,"a.b":3,"é 💥":4}}`;
    const record = await api.call.post(at.records, text);
    expect(Object.entries(record.values)).toEqual(names.map((name, index) => [name, index + 1]));
  });

  it("is found only under its own collection, as are fields", async () => {
    const [at, other] = [await collection({ name: "a", kind: "text" }), await collection()];
    const record = await api.call.post(at.records, { values: { a: "x" } });
    const field = await fieldNamed(at, "a");
    for (const path of [`${other.records}/${record.id}`, `${other.fields}/${field.id}`])
      for (const method of ["GET", "DELETE"]) expect((await api.call(method, path)).status).toBe(404);
    expect(await api.call.get(at.records)).toEqual([record]);
  });

  it("can be listed in pages, in order of creation", async () => {
    const at = await collection({ name: "n", kind: "number" });
    for (let n = 0; n < 12; n++) await api.call.post(at.records, { values: { n } });
    const read: number[] = [];
    for (const offset of [0, 5, 10]) {
      const page = await api.call("GET", `${at.records}?limit=5&offset=${offset}`);
      expect(page.headers.get("x-total-count")).toBe("12");
      for (const { values } of page.body) read.push(values.n);
    }
    expect(read).toEqual(Array.from({ length: 12 }, (_, n) => n));
    const end = await api.call("GET", `${at.records}?offset=12`);
    expect([end.body, end.headers.get("x-total-count")]).toEqual([[], "12"]);
  });

  it("cannot have the same value in a unique field as another record, even after concurrent requests", async () => {
    const at = await collection({ name: "key", kind: "text", unique: true });
    const create = (key: string | null) => api.call("POST", at.records, { values: { key } });
    const answers = await Promise.all([1, 2, 3].map(() => create("a")));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const other = (await create("b")).body;
    const path = `${at.records}/${other.id}`;
    expect((await api.call("PUT", path, { values: { key: "a" } })).status).toBe(409);
    for (const key of ["b", "c"]) await api.call.put(path, { values: { key } });
    for (const key of ["b", null, null]) expect((await create(key)).status).toBe(200);
    await api.call.delete(path);
    expect((await create("c")).status).toBe(200);
  });
});

describe("a field", () => {
  it("has a name that is unique in its collection, and may have options only if its kind is `choice`", async () => {
    const at = await collection();
    const create = (body: object) => api.call("POST", at.fields, { name: "f", kind: "text", ...body });
    const answers = await Promise.all([create({}), create({})]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    for (const [body, path] of [
      [{ kind: "choice" }, "options"],
      [{ options: ["a"] }, "options"],
      [{ kind: "choice", options: ["a", "a"] }, "options[1]"],
      [{ kind: "json", unique: true }, "unique"],
    ] as const) {
      const refusal = await api.call.expectRejection("POST", at.fields, { name: "g", kind: "text", ...body });
      expect(refusal).toMatchObject({ status: 400, paths: [path] });
    }
  });

  it("can be renamed without losing its values, and is deleted with its values", async () => {
    const at = await collection({ name: "a", kind: "text", unique: true }, { name: "b", kind: "json" });
    const { id } = await api.call.post(at.records, { values: { a: "1", b: { z: 1, y: [1.5] } } });
    const [a, b] = [await fieldNamed(at, "a"), await fieldNamed(at, "b")];
    await api.call.put(`${at.fields}/${b.id}`, { name: "c" });
    const values = async () => (await api.call.get(`${at.records}/${id}`)).values;
    expect(await values()).toEqual({ a: "1", c: { z: 1, y: [1.5] } });
    expect(await api.call.delete(`${at.fields}/${a.id}`)).toEqual({ id: a.id });
    expect(await values()).toEqual({ c: { z: 1, y: [1.5] } });
    const kept = await api.database.db
      .selectFrom("collectionRecords")
      .select("values")
      .where("id", "=", id)
      .execute();
    expect(kept).toEqual([{ values: { [b.id]: { z: 1, y: [1.5] } } }]);
    await api.call.post(at.fields, { name: "a", kind: "number" });
    expect(await values()).toEqual({ c: { z: 1, y: [1.5] }, a: null });
  });

  it("rejects a change that would make existing records invalid", async () => {
    const at = await collection({ name: "a", kind: "choice", options: ["x", "y"] });
    const records = [
      await api.call.post(at.records, { values: { a: "x" } }),
      await api.call.post(at.records, { values: {} }),
    ];
    const { id } = await fieldNamed(at, "a");
    const put = (patch: object) => api.call("PUT", `${at.fields}/${id}`, patch);
    expect((await put({ kind: "text", options: [] })).status).toBe(409);
    expect((await put({ options: ["y"] })).status).toBe(409);
    expect((await put({ required: true })).status).toBe(409);
    expect((await put({ options: ["x"] })).status).toBe(200);
    expect((await api.call("POST", at.fields, { name: "b", kind: "text", required: true })).status).toBe(409);
    await api.call.put(`${at.records}/${records[1].id}`, { values: { a: "x" } });
    expect((await put({ required: true })).status).toBe(200);
    for (const one of records) await api.call.delete(`${at.records}/${one.id}`);
    expect((await put({ kind: "text", options: [], unique: true })).status).toBe(200);
  });

  it("can become unique only if its existing values are unique", async () => {
    const at = await collection({ name: "a", kind: "number" });
    const [, second] = [
      await api.call.post(at.records, { values: { a: 1 } }),
      await api.call.post(at.records, { values: { a: 1 } }),
    ];
    const { id } = await fieldNamed(at, "a");
    const put = (unique: boolean) => api.call("PUT", `${at.fields}/${id}`, { unique });
    expect((await put(true)).status).toBe(409);
    await api.call.put(`${at.records}/${second.id}`, { values: { a: 2 } });
    expect((await put(true)).status).toBe(200);
    expect((await api.call("POST", at.records, { values: { a: 1 } })).status).toBe(409);
    expect((await put(false)).status).toBe(200);
    expect((await api.call("POST", at.records, { values: { a: 1 } })).status).toBe(200);
  });
});

describe("a collection", () => {
  it("is deleted with its fields and records, but cannot be deleted while a knowledge base uses it", async () => {
    const at = await collection({ name: "a", kind: "text", unique: true });
    await api.call.post(at.records, { values: { a: "x" } });
    const base = await api.call.post("/knowledge-bases", { name: "kb", collectionId: at.id });
    expect((await api.call("DELETE", at.path)).status).toBe(409);
    await api.call.put(`/knowledge-bases/${base.id}`, { collectionId: null });
    expect(await api.call.delete(at.path)).toEqual({ id: at.id });
    expect((await api.call("GET", at.records)).status).toBe(404);
  });
});
