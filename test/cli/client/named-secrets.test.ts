import { expect, it } from "vitest";
import { readSecretNames, requireNoNamedSecrets } from "../../../src/cli/client/named-secrets.ts";

it("rejects a new secret only if the channel has named secrets", () => {
  requireNoNamedSecrets({ uid: "hooks", secretNames: [] });
  requireNoNamedSecrets({ uid: "hooks", secretNames: [null] });
  expect(() => requireNoNamedSecrets({ uid: "hooks", secretNames: [null, "verifyToken"] })).toThrow(
    "also the named ones (verifyToken)",
  );
});

it("does not take the secrets of a channel for missing if the gateway does not report them", () => {
  expect(() => readSecretNames({})).toThrow("Upgrade it to the version of this command line.");
});
