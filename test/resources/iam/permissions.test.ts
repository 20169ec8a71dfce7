import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

describe("the permissions", () => {
  it("are the names that operations ask for, for the whole of an answer too, and the one for all", async () => {
    const all = await call.get("/iam/permissions?limit=200");
    const names = all.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(["*", "apps.read", "apps.write", "iam.read", "iam.write"]));
    expect(new Set(names).size).toBe(names.length);
    expect((await call("GET", "/iam/permissions")).headers.get("x-total-count")).toBe(String(names.length));
    const { paths } = await call.get("/openapi.json");
    const asked = Object.values<Record<string, Record<string, unknown>>>(paths)
      .flatMap((path) => Object.values(path))
      .flatMap((operation) => [operation["x-permission"] ?? [], operation["x-reveals"] ?? []].flat());
    expect(names.toSorted()).toEqual([...new Set(asked), "*"].sort());
  });

  it("keep their ids, by which each is found", async () => {
    const [first, second] = await call.get("/iam/permissions");
    expect(await call.get(`/iam/permissions/${first.id}`)).toEqual(first);
    expect(await call.get("/iam/permissions?limit=1&offset=1")).toEqual([second]);
    expect(first.organizationId).toBe((await call.get("/organizations"))[0].id);
  });

  it("cannot be made, changed or deleted", async () => {
    const [{ id }] = await call.get("/iam/permissions");
    for (const [method, path] of [
      ["POST", "/iam/permissions"],
      ["PUT", `/iam/permissions/${id}`],
      ["DELETE", `/iam/permissions/${id}`],
    ] as const) {
      const body = method === "DELETE" ? undefined : {};
      expect(await call.refusal(method, path, body)).toMatchObject({ status: 405 });
    }
  });
});
