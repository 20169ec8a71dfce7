import { describe, expect, it } from "vitest";
import { credentialsRejected } from "../../../src/channels/pull/source-end.ts";

const NOW = 1_000_000;

describe("rejected credentials of a pull source", () => {
  it("are retried after a minute at the earliest, because a retry may renew a token or lock an account", () => {
    expect(credentialsRejected(NOW, undefined)).toMatchObject({
      kind: "failed",
      code: "http_401",
      isRejection: true,
      stateIfPersistent: "needsReauth",
      notBeforeMs: NOW + 60_000,
    });
  });

  it("are retried at the time that the server requests, but not before a minute has passed", () => {
    const refused = { kind: "failed", isRejection: true, stateIfPersistent: "needsReauth" };
    expect(credentialsRejected(NOW, NOW + 5_000)).toMatchObject({ ...refused, notBeforeMs: NOW + 60_000 });
    expect(credentialsRejected(NOW, NOW + 90_000)).toMatchObject({ ...refused, notBeforeMs: NOW + 90_000 });
  });
});
