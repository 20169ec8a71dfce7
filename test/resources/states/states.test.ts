import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

describe("a state", () => {
  it("can be created, read, listed, changed and deleted", async () => {
    const state = await call.post("/states", { name: "Checkout", description: "of the shop" });
    expect(state).toEqual({
      id: expect.stringMatching(/^state_/),
      name: "Checkout",
      description: "of the shop",
      organizationId: expect.stringMatching(/^org_/),
      createdAt: expect.any(String),
      updatedAt: state.createdAt,
    });
    const plain = await call.post("/states", { name: "Checkout" });
    expect(plain.description).toBeNull();
    expect(await call.get(`/states/${state.id}`)).toEqual(state);
    const { body, headers } = await call("GET", "/states");
    expect([body, headers.get("x-total-count")]).toEqual([[state, plain], "2"]);
    const changed = await call.put(`/states/${state.id}`, { description: null });
    expect(changed).toMatchObject({ name: "Checkout", description: null });
    expect(await call.delete(`/states/${state.id}`)).toEqual({ id: state.id });
    expect((await call("GET", `/states/${state.id}`)).status).toBe(404);
  });

  it("is deleted with its variables", async () => {
    const { id } = await call.post("/states", { name: "a" });
    await call.post(`/states/${id}/variables`, [{ name: "a" }]);
    const variables = () =>
      api.database.db.selectFrom("variables").select("id").where("stateId", "=", id).execute();
    expect(await variables()).toHaveLength(1);
    await call.delete(`/states/${id}`);
    expect(await variables()).toEqual([]);
  });
});
