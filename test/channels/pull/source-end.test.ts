import { describe, expect, it } from "vitest";
import { credentialsRejected } from "../../../src/channels/pull/source-end.ts";

const NOW = 1_000_000;

describe("a call whose credentials are refused", () => {
  it("is made again a minute later at the soonest: a try may renew a token, and lock an account", () => {
    expect(credentialsRejected(NOW, undefined)).toMatchObject({
      kind: "failed",
      code: "http_401",
      isRejection: true,
      stateIfPersistent: "needsReauth",
      notBeforeMs: NOW + 60_000,
    });
  });

  it("is made again later where the server says so, and no sooner, and counts all the same", () => {
    const refused = { kind: "failed", isRejection: true, stateIfPersistent: "needsReauth" };
    expect(credentialsRejected(NOW, NOW + 5_000)).toMatchObject({ ...refused, notBeforeMs: NOW + 60_000 });
    expect(credentialsRejected(NOW, NOW + 90_000)).toMatchObject({ ...refused, notBeforeMs: NOW + 90_000 });
  });
});
