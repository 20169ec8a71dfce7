import { beforeEach, describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let stateId: string;
const api = opened(createTestApi);
const { call } = api;
beforeEach(async () => {
  stateId = await makeState();
});

interface Named {
  readonly id: string;
  readonly name: string;
}
const makeState = async (): Promise<string> => (await call.post("/states", { name: "state" })).id;
const add = (body: unknown, headers = {}) => call("POST", `/states/${stateId}/variables`, body, headers);
const refusal = (body: unknown) => call.expectRejection("POST", `/states/${stateId}/variables`, body);
const list = (query = ""): Promise<readonly Named[]> => call.get(`/states/${stateId}/variables${query}`);
const names = async () => (await list()).map(({ name }) => name);

const SCHEMA = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };

describe("a request to add variables", () => {
  it("adds all variables in the given order, and returns the id of the state", async () => {
    const given = [
      { name: "b", scopeId: "chat", groupIds: ["g2", "g1"], tags: ["t"], schema: SCHEMA },
      ...["a", "d", "c"].map((name) => ({ name })),
      { name: "any", schema: true },
    ];
    const { status, body } = await add(given);
    expect([status, body]).toEqual([200, { id: stateId }]);
    const variables = await list();
    expect(variables.map(({ name }) => name)).toEqual(["b", "a", "d", "c", "any"]);
    expect(variables[0]).toEqual({
      ...given[0],
      id: expect.stringMatching(/^var_/),
      stateId,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect(variables[1]).toMatchObject({ scopeId: null, groupIds: [], tags: [], schema: null });
    expect(variables[4]).toMatchObject({ schema: true });
  });

  it("adds none of the variables if one is invalid, and reports each invalid field", async () => {
    const wrong = [{ name: "a" }, { scopeId: 1 }, { name: "", tags: [""], schema: "x", extra: 1 }];
    expect((await refusal(wrong)).paths).toEqual([
      ...["[1].name", "[1].scopeId", "[2].name", "[2].tags[0]", "[2].schema", "[2].extra"],
    ]);
    for (const body of [
      [],
      {},
      undefined,
      null,
      [[]],
      Array.from({ length: 201 }, (_, i) => ({ name: `${i}` })),
    ])
      expect((await add(body)).status).toBe(400);
    expect(await names()).toEqual([]);
  });

  it.each([
    [{ type: "integr" }, "[1].schema/type"],
    [{ properties: { a: { minLength: -1 } } }, "[1].schema/properties/a/minLength"],
    [{ $ref: "#/$defs/none" }, "[1].schema/$ref"],
    [{ $ref: "https://elsewhere.example/schema" }, "[1].schema/$ref"],
    [{ pattern: "(" }, "[1].schema/pattern"],
    [{ $schema: "urn:mine" }, "[1].schema/$schema"],
  ])("adds no variable if one has the invalid schema %o", async (schema, path) => {
    const body = [
      { name: "a", schema: SCHEMA },
      { name: "b", schema },
    ];
    expect(await refusal(body)).toMatchObject({ status: 400, paths: [path] });
    expect(await names()).toEqual([]);
  });

  it("accepts each name once per scope, and once without a scope", async () => {
    const given = [{ name: "a" }, { name: "a", scopeId: "x" }, { name: "a", scopeId: "y" }, { name: "A" }];
    expect((await add(given)).status).toBe(200);
    for (const one of given) {
      expect(await refusal([{ name: "new" }, one])).toMatchObject({ status: 409, code: "conflict" });
    }
    expect(await list()).toHaveLength(given.length);
    stateId = await makeState();
    for (const scopeId of [null, "x"]) {
      const twice = [{ name: "b", scopeId }, { name: "c" }, { name: "b", scopeId }];
      expect(await refusal(twice)).toMatchObject({ status: 409, code: "conflict" });
    }
    expect(await names()).toEqual([]);
    expect((await add(given)).status).toBe(200);
  });

  it("adds a name only once if four requests add that name concurrently", async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map((n) => add([{ name: `own ${n}` }, { name: "shared" }])),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    expect((await names()).filter((name) => name === "shared")).toHaveLength(1);
    expect(await names()).toHaveLength(2);
  });

  it("gets the first response again if the request is repeated with the same Idempotency-Key", async () => {
    const headers = { "idempotency-key": "once" };
    const first = await add([{ name: "a" }], headers);
    const second = await add([{ name: "a" }], headers);
    expect([second.status, second.body]).toEqual([200, first.body]);
    expect(await names()).toEqual(["a"]);
  });
});

describe("a variable", () => {
  const one = async (body: object = { name: "a" }): Promise<Named> => {
    await add([body]);
    const found = (await list()).at(-1);
    if (!found) throw new Error("nothing was added");
    return found;
  };
  const at = (id: string, state = stateId) => `/states/${state}/variables/${id}`;

  it("can be read, listed in pages and deleted", async () => {
    await add([{ name: "a" }, { name: "b" }, { name: "c" }]);
    const [, second] = await list();
    expect(await list("?limit=1&offset=1")).toEqual([second]);
    const { headers } = await call("GET", `/states/${stateId}/variables?limit=1`);
    expect(headers.get("x-total-count")).toBe("3");
    const id = second?.id ?? "";
    expect(await call.get(at(id))).toEqual(second);
    expect(await call.delete(at(id))).toEqual({ id });
    expect((await call("GET", at(id))).status).toBe(404);
    expect(await names()).toEqual(["a", "c"]);
  });

  it("is changed by a merge patch that replaces its schema as a whole", async () => {
    const { id } = await one({ name: "a", scopeId: "x", tags: ["t"], schema: SCHEMA });
    const put = (patch: object) => call.put(at(id), patch);
    const schema = { properties: { b: { const: null } } };
    expect(await put({ schema })).toMatchObject({ schema, tags: ["t"] });
    expect((await call.get(at(id))).schema).toEqual(schema);
    expect(await put({ schema: null, scopeId: null, tags: [], name: "b" })).toMatchObject({
      name: "b",
      scopeId: null,
      tags: [],
      schema: null,
    });
    for (const [patch, paths] of [
      [{ schema: { type: "nothing" } }, ["schema/type"]],
      [{ schema: { title: "a".repeat(70_000) } }, ["schema"]],
      [{ name: null, tags: null, stateId: "x" }, ["name", "tags", "stateId"]],
    ] as const)
      expect((await call.expectRejection("PUT", at(id), patch)).paths).toEqual(paths);
    await add([{ name: "c" }]);
    expect(await call.expectRejection("PUT", at(id), { name: "c" })).toMatchObject({ status: 409 });
    await put({ name: "c", scopeId: "y" });
  });

  it("keeps all changes if several requests change different fields concurrently", async () => {
    const { id } = await one();
    const patches = [{ tags: ["t"] }, { groupIds: ["g"] }, { schema: { type: "string" } }];
    const answers = await Promise.all(patches.map((patch) => call("PUT", at(id), patch)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await call("GET", at(id))).body).toMatchObject(Object.assign({}, ...patches));
  });

  it("is found only in its own state", async () => {
    const { id } = await one();
    const other = await makeState();
    for (const [method, body] of [["GET"], ["PUT", { name: "b" }], ["DELETE"]] as const)
      expect((await api.call(method, at(id, other), body)).status).toBe(404);
    expect(await names()).toEqual(["a"]);
  });
});
