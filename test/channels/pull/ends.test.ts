import { describe, expect, it } from "vitest";
import { credentialsRefused } from "../../../src/channels/pull/ends.ts";

const NOW = 1_000_000;

describe("a call whose credentials are refused", () => {
  it("is made again a minute later at the soonest: a try may renew a token, and lock an account", () => {
    expect(credentialsRefused(NOW, undefined)).toMatchObject({
      kind: "failed",
      code: "http_401",
      isRefusal: true,
      lastingState: "needsReauth",
      notBeforeMs: NOW + 60_000,
    });
  });

  it("is made again later where the server says so, and no sooner, and counts all the same", () => {
    const refused = { kind: "failed", isRefusal: true, lastingState: "needsReauth" };
    expect(credentialsRefused(NOW, NOW + 5_000)).toMatchObject({ ...refused, notBeforeMs: NOW + 60_000 });
    expect(credentialsRefused(NOW, NOW + 90_000)).toMatchObject({ ...refused, notBeforeMs: NOW + 90_000 });
  });
});
