import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { missing, visible } from "../support/isolated.ts";

let api: TestApi;
let call: Call;
beforeEach(async () => {
  api = await createTestApi();
  call = api.call;
});
afterEach(() => api[Symbol.asyncDispose]());

const get = async (path: string) => (await call("GET", path)).body;

describe("the permissions", () => {
  it("are one for each name that a route asks for, and the one for all", async () => {
    const all = await get("/iam/permissions?limit=200");
    const names = all.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(["*", "apps.read", "apps.write", "iam.read", "iam.write"]));
    expect(new Set(names).size).toBe(names.length);
    expect((await call("GET", "/iam/permissions")).headers.get("x-total-count")).toBe(String(names.length));
    const asked = Object.values<Record<string, Record<string, unknown>>>((await get("/openapi.json")).paths)
      .flatMap((path) => Object.values(path))
      .flatMap((operation) => operation["x-permission"] ?? []);
    expect(names.toSorted()).toEqual([...new Set(asked), "*"].sort());
  });

  it("keep their ids, by which each is found", async () => {
    const [first, second] = await get("/iam/permissions");
    expect(await get(`/iam/permissions/${first.id}`)).toEqual(first);
    expect(await get("/iam/permissions?limit=1&offset=1")).toEqual([second]);
    expect(first.organizationId).toBe((await get("/organizations"))[0].id);
  });

  it("are made by nobody", async () => {
    const [{ id }] = await get("/iam/permissions");
    for (const [method, path] of [
      ["POST", "/iam/permissions"],
      ["PUT", `/iam/permissions/${id}`],
      ["DELETE", `/iam/permissions/${id}`],
    ] as const) {
      expect((await call(method, path, method === "DELETE" ? undefined : {})).status).toBe(405);
    }
  });

  it("are others in every organization", async () => {
    const [{ id }] = await get("/iam/permissions");
    const stranger = api.as(await api.strangerKey());
    const foreign = visible(await stranger("GET", `/iam/permissions/${id}`));
    expect(foreign.status).toBe(404);
    expect(visible(await stranger("GET", `/iam/permissions/${missing(id)}`))).toEqual(foreign);
    expect(
      (await stranger("GET", "/iam/permissions")).body.map((one: { id: string }) => one.id),
    ).not.toContain(id);
  });
});
