import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

describe("the list of permissions", () => {
  it("contains `*` and each permission that an operation requires or that reveals additional response fields", async () => {
    const all = await call.get("/iam/permissions?limit=200");
    const names = all.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(["*", "apps.read", "apps.write", "iam.read", "iam.write"]));
    expect(new Set(names).size).toBe(names.length);
    expect((await call("GET", "/iam/permissions")).headers.get("x-total-count")).toBe(String(names.length));
    const { paths } = await call.get("/openapi.json");
    const required = Object.values<Record<string, Record<string, unknown>>>(paths)
      .flatMap((path) => Object.values(path))
      .flatMap((operation) => [operation["x-permission"] ?? [], operation["x-reveals"] ?? []].flat());
    expect(names.toSorted()).toEqual([...new Set(required), "*"].sort());
  });

  it("has permissions with stable ids, and each can be read by its id", async () => {
    const [first, second] = await call.get("/iam/permissions");
    expect(await call.get(`/iam/permissions/${first.id}`)).toEqual(first);
    expect(await call.get("/iam/permissions?limit=1&offset=1")).toEqual([second]);
    expect(first.organizationId).toBe((await call.get("/organizations"))[0].id);
  });

  it("cannot be changed: permissions can be neither created, changed nor deleted", async () => {
    const [{ id }] = await call.get("/iam/permissions");
    for (const [method, path] of [
      ["POST", "/iam/permissions"],
      ["PUT", `/iam/permissions/${id}`],
      ["DELETE", `/iam/permissions/${id}`],
    ] as const) {
      const body = method === "DELETE" ? undefined : {};
      expect(await call.expectRejection(method, path, body)).toMatchObject({ status: 405 });
    }
  });
});
