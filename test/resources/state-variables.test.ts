import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { missing, visible } from "../support/isolated.ts";

let api: TestApi;
let stranger: Call;
let stateId: string;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
});
beforeEach(async () => {
  stateId = await stateOf(api.call);
});
afterAll(() => api[Symbol.asyncDispose]());

interface Named {
  readonly id: string;
  readonly name: string;
}
const stateOf = async (call: Call): Promise<string> =>
  (await call("POST", "/states", { name: "state" })).body.id;
const add = (body: unknown, call: Call = api.call, headers = {}) =>
  call("POST", `/states/${stateId}/variables`, body, headers);
const list = async (query = ""): Promise<readonly Named[]> =>
  (await api.call("GET", `/states/${stateId}/variables${query}`)).body;
const names = async () => (await list()).map(({ name }) => name);
const paths = ({ body }: { readonly body: { readonly details: readonly { readonly path: string }[] } }) =>
  body.details.map(({ path }) => path);

const SCHEMA = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };

describe("adding variables", () => {
  it("adds all of them in their order and answers the state", async () => {
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

  it("adds none where one does not fit, and names each field", async () => {
    const wrong = [{ name: "a" }, { scopeId: 1 }, { name: "", tags: [""], schema: "x", extra: 1 }];
    expect(paths(await add(wrong))).toEqual([
      "[1].name",
      "[1].scopeId",
      "[2].name",
      "[2].tags[0]",
      "[2].schema",
      "[2].extra",
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
  ])("adds none where one has the schema %o, which is none", async (schema, path) => {
    const answer = await add([
      { name: "a", schema: SCHEMA },
      { name: "b", schema },
    ]);
    expect([answer.status, paths(answer)]).toEqual([400, [path]]);
    expect(await names()).toEqual([]);
  });

  it("takes a name once in each scope; no scope is one", async () => {
    const given = [{ name: "a" }, { name: "a", scopeId: "x" }, { name: "a", scopeId: "y" }, { name: "A" }];
    expect((await add(given)).status).toBe(200);
    for (const one of given) {
      const { status, body } = await add([{ name: "new" }, one]);
      expect([status, body.code]).toEqual([409, "conflict"]);
    }
    expect((await list()).length).toBe(given.length);
    stateId = await stateOf(api.call);
    for (const scopeId of [null, "x"]) {
      const twice = await add([{ name: "b", scopeId }, { name: "c" }, { name: "b", scopeId }]);
      expect([twice.status, twice.body.code]).toEqual([409, "conflict"]);
    }
    expect(await names()).toEqual([]);
    expect((await add(given)).status).toBe(200);
  });

  it("adds a name once when many ask at the same time", async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map((n) => add([{ name: `own ${n}` }, { name: "shared" }])),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    expect((await names()).filter((name) => name === "shared")).toHaveLength(1);
    expect(await names()).toHaveLength(2);
  });

  it("is answered once more to whoever asks again with the same key", async () => {
    const headers = { "idempotency-key": "once" };
    const first = await add([{ name: "a" }], api.call, headers);
    const second = await add([{ name: "a" }], api.call, headers);
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

  it("is seen, listed in pages and deleted", async () => {
    await add([{ name: "a" }, { name: "b" }, { name: "c" }]);
    const [, second] = await list();
    expect(await list("?limit=1&offset=1")).toEqual([second]);
    const { headers } = await api.call("GET", `/states/${stateId}/variables?limit=1`);
    expect(headers.get("x-total-count")).toBe("3");
    const id = second?.id ?? "";
    expect((await api.call("GET", at(id))).body).toEqual(second);
    expect((await api.call("DELETE", at(id))).body).toEqual({ id });
    expect((await api.call("GET", at(id))).status).toBe(404);
    expect(await names()).toEqual(["a", "c"]);
  });

  it("has a schema that no number of merge patches makes endless", async () => {
    const { id } = await one({ name: "a", schema: { title: "a".repeat(60_000) } });
    const answer = await api.call("PUT", at(id), { schema: { description: "b".repeat(10_000) } });
    expect([answer.status, paths(answer)]).toEqual([400, ["schema"]]);
  });

  it("is changed by a merge patch, schema included", async () => {
    const { id } = await one({ name: "a", scopeId: "x", tags: ["t"], schema: SCHEMA });
    const put = async (patch: object) => (await api.call("PUT", at(id), patch)).body;
    expect(await put({ schema: { properties: { b: {} }, required: null } })).toMatchObject({
      schema: { type: "object", properties: { a: { type: "integer" }, b: {} } },
      tags: ["t"],
    });
    expect(await put({ schema: null, scopeId: null, tags: null, name: "b" })).toMatchObject({
      ...{ name: "b", scopeId: null, tags: [], schema: null },
    });
    expect(paths(await api.call("PUT", at(id), { schema: { type: "nothing" } }))).toEqual(["schema/type"]);
    expect(paths(await api.call("PUT", at(id), { name: null, stateId: "x" }))).toEqual(["name", "stateId"]);
    await add([{ name: "c" }]);
    expect((await api.call("PUT", at(id), { name: "c" })).status).toBe(409);
    expect((await api.call("PUT", at(id), { name: "c", scopeId: "y" })).status).toBe(200);
  });

  it("loses no change of many that come at the same time", async () => {
    const { id } = await one();
    const patches = [{ tags: ["t"] }, { groupIds: ["g"] }, { schema: { type: "string" } }];
    const answers = await Promise.all(patches.map((patch) => api.call("PUT", at(id), patch)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await api.call("GET", at(id))).body).toMatchObject(Object.assign({}, ...patches));
  });

  it("is in its own state only", async () => {
    const { id } = await one();
    const other = await stateOf(api.call);
    for (const [method, body] of [["GET"], ["PUT", { name: "b" }], ["DELETE"]] as const)
      expect((await api.call(method, at(id, other), body)).status).toBe(404);
    expect(await names()).toEqual(["a"]);
  });

  it("is hidden from other organizations, with its state", async () => {
    const { id } = await one();
    const theirs = await stateOf(stranger);
    const requests = (state: string, variable: string) =>
      [
        ["GET", at(variable, state)],
        ["PUT", at(variable, state), { name: "b" }],
        ["DELETE", at(variable, state)],
        ["GET", `/states/${state}/variables`],
        ["POST", `/states/${state}/variables`, [{ name: "b" }]],
      ] as const;
    const foreign = requests(stateId, id);
    const random = requests(missing(stateId), missing(id));
    for (const [index, [method, path, body]] of foreign.entries()) {
      const seen = visible(await stranger(method, path, body));
      expect(seen.status).toBe(404);
      expect(visible(await stranger(method, random[index]?.[1] ?? "", body))).toEqual(seen);
    }
    const inTheirs = visible(await stranger("GET", at(id, theirs)));
    expect(inTheirs.status).toBe(404);
    expect(visible(await stranger("GET", at(missing(id), theirs)))).toEqual(inTheirs);
    expect(await names()).toEqual(["a"]);
  });
});
