import { expect, it } from "vitest";
import { permissionCatalog, requireHeld, requirePermission } from "../../../src/http/callers/authorize.ts";
import type { Caller } from "../../../src/http/context.ts";
import { ApiError } from "../../../src/http/errors.ts";

const callerWith = (...permissions: string[]): Caller => ({
  requestId: "req_a",
  by: "apiKey",
  keyId: "key_a",
  accountId: "acc_a",
  organizationId: "org_a",
  defaultSpaceId: null,
  permissions: new Set(permissions),
});

/** Returns the message of a 403, or `undefined` if the call succeeds. */
function getRejection(run: () => void): string | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "permission_denied") throw error;
    return error.message;
  }
}

it("the permission check accepts callers with the required permission or *, and otherwise names the missing permission", () => {
  expect(getRejection(() => requirePermission(callerWith("apps.read"), "apps.read"))).toBeUndefined();
  expect(getRejection(() => requirePermission(callerWith("*"), "apps.read"))).toBeUndefined();
  for (const held of [[], ["apps.write"], ["apps"], ["apps.*"]]) {
    expect(getRejection(() => requirePermission(callerWith(...held), "apps.read"))).toContain("apps.read");
  }
});

it("callers can grant only permissions that they have, otherwise the error names the missing permissions", () => {
  const grants = (held: string[], granted: string[]) =>
    getRejection(() => requireHeld(callerWith(...held), granted));
  expect(grants(["*"], ["*", "apps.read", "not.yet"])).toBeUndefined();
  expect(grants(["apps.read", "apps.write"], ["apps.read", "apps.read"])).toBeUndefined();
  expect(grants([], [])).toBeUndefined();
  expect(grants(["apps.read"], ["apps.read", "apps.write", "iam.write"])).toMatch(
    /apps\.write, iam\.write\.$/,
  );
  expect(grants(["apps.read", "iam.write"], ["*"])).toContain("*");
  const many = Array.from({ length: 1_000 }, (_, i) => `noun${i}.read`);
  expect(grants([], many)?.length).toBeLessThan(1_000);
});

it("the list of permissions contains * first, then each permission that a route requires once", () => {
  expect(permissionCatalog(["b.write", null, "a.read", "b.write", "b.read"])).toEqual([
    "*",
    "a.read",
    "b.read",
    "b.write",
  ]);
});
