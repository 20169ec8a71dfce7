import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden } from "../support/isolated.ts";

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api[Symbol.asyncDispose]());

const create = (body: object, call: Call = api.call) => call("POST", "/states", body);

describe("a state", () => {
  it("is made, seen, listed, changed and deleted", async () => {
    const { body: state } = await create({ name: "Checkout", description: "of the shop" });
    expect(state).toEqual({
      id: expect.stringMatching(/^state_/),
      name: "Checkout",
      description: "of the shop",
      organizationId: expect.stringMatching(/^org_/),
      createdAt: expect.any(String),
      updatedAt: state.createdAt,
    });
    const { body: plain } = await create({ name: "Checkout" });
    expect(plain.description).toBeNull();
    expect((await api.call("GET", `/states/${state.id}`)).body).toEqual(state);
    const { body, headers } = await api.call("GET", "/states");
    expect([body, headers.get("x-total-count")]).toEqual([[state, plain], "2"]);
    const changed = (await api.call("PUT", `/states/${state.id}`, { description: null })).body;
    expect(changed).toMatchObject({ name: "Checkout", description: null });
    expect((await api.call("DELETE", `/states/${state.id}`)).body).toEqual({ id: state.id });
    expect((await api.call("GET", `/states/${state.id}`)).status).toBe(404);
  });

  it("is refused with each field that does not fit", async () => {
    expect((await create({ name: 1, description: 1, extra: 1 })).body).toMatchObject({
      code: "invalid_parameters",
      details: [{ path: "name" }, { path: "description" }, { path: "extra" }],
    });
  });

  it("takes its variables with it", async () => {
    const { id } = (await create({ name: "a" })).body;
    await api.call("POST", `/states/${id}/variables`, [{ name: "a" }]);
    await api.call("DELETE", `/states/${id}`);
    expect(
      await api.database.db.selectFrom("variables").select("id").where("stateId", "=", id).execute(),
    ).toEqual([]);
  });

  it("is hidden from other organizations", async () => {
    const { id } = (await create({ name: "ours" })).body;
    const stranger = api.as(await api.strangerKey());
    await expectHidden(stranger, "/states", id, { name: "theirs" });
    expect((await stranger("GET", "/states")).headers.get("x-total-count")).toBe("0");
  });
});
