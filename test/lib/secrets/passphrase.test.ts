import { describe, expect, it } from "vitest";
import {
  openUnderPassphrase,
  sealUnderPassphrase,
  WrongPassphraseError,
} from "../../../src/lib/secrets/passphrase.ts";
import { itDeep } from "../../support/deep-run.ts";

describe("a text encrypted with a passphrase", () => {
  itDeep("is decrypted only with its passphrase, in any Unicode normalization form", async () => {
    const sealed = await sealUnderPassphrase("gr\u00fc\u00dfe und mehr", "s3cret", "place");
    expect(JSON.stringify(sealed)).not.toMatch(/s3cret|mehr/);
    expect(await openUnderPassphrase("gru\u0308\u00dfe und mehr", sealed, "place")).toBe("s3cret");
    await expect(openUnderPassphrase("Gr\u00fc\u00dfe und mehr", sealed, "place")).rejects.toThrow(
      WrongPassphraseError,
    );
  });

  it("is rejected if its key derivation parameters were modified so that decryption would take hours", async () => {
    const sealed = { kdf: "scrypt", n: 2 ** 20, r: 1, p: 2 ** 20, salt: "AAAA", text: "any" } as const;
    await expect(openUnderPassphrase("any", sealed, "place")).rejects.toThrow(/parallelization/);
  });

  it("is rejected if its key derivation parameters were modified so that decryption would exhaust memory", async () => {
    const sealed = { kdf: "scrypt", n: 2 ** 24, r: 8, p: 1, salt: "c2FsdA", text: "s1.a.b" } as const;
    await expect(openUnderPassphrase("any", sealed, "place")).rejects.toThrow(/memory limit/i);
  });
});
