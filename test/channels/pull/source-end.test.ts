import { describe, expect, it } from "vitest";
import { credentialsRejected, endForThrownError } from "../../../src/channels/pull/source-end.ts";
import { BudgetError, UnavailableError } from "../../../src/lib/errors.ts";
import { createLog } from "../../../src/log.ts";

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

it("the end of a source run whose events cannot be stored names the budget that is used up", () => {
  const log = createLog({ level: "silent" });
  const full = new BudgetError("quarantine_full", "the quarantine of the channel is full", {
    retryAfterSeconds: 1,
  });
  expect(endForThrownError(full, log)).toMatchObject({
    code: "quarantine_full",
    message: expect.stringMatching(/because the quarantine of the channel is full\. Delete or redrive/),
  });
  expect(endForThrownError(new UnavailableError("secret"), log)).toMatchObject({
    code: "unavailable",
    message: expect.not.stringContaining("secret"),
  });
});
