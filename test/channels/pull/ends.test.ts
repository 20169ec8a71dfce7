import { describe, expect, it } from "vitest";
import { credentialsRefused } from "../../../src/channels/pull/ends.ts";

const NOW = 1_000_000;

describe("a call whose credentials are refused", () => {
  it("is made again a minute later at the soonest: a try may renew a token, and lock an account", () => {
    expect(credentialsRefused(NOW, undefined)).toMatchObject({
      ...{ kind: "failed", code: "http_401", isRefusal: true, lastingState: "needsReauth" },
      notBeforeMs: NOW + 60_000,
    });
  });

  it("is made again when the server wants it, and counts for nothing, where the server says when", () => {
    const end = credentialsRefused(NOW, NOW + 5_000);
    expect(end).toMatchObject({ kind: "failed", code: "http_401", notBeforeMs: NOW + 5_000 });
    expect(end).not.toHaveProperty("isRefusal");
  });
});
