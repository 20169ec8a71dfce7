import { describe, expect, it } from "vitest";
import { queryValues } from "../../src/lib/urlencoded.ts";
import { isVerified, type RequestParts, requestOf, senderOf } from "../verify/support.ts";

export interface VerifierSamples {
  readonly name: string;
  /** The settings `verification` and `secrets`. */
  readonly config: object;
  /** The same settings with another key of the same form, or the reason why the scheme has no key. */
  readonly otherKey: { readonly config: object } | { readonly none: string };
  /** A request that the scheme accepts. */
  readonly parts: RequestParts;
  /** The reason why body changes are not detected. Omitted when each byte of the body is signed. */
  readonly bodyIsNotSigned?: string;
  /** The reason why the scheme needs no headers or query. Omitted when it rejects a request without them. */
  readonly needsNothing?: string;
}

/** Describes the guarantees of every verification scheme. */
export function describeVerifier(samples: VerifierSamples): void {
  const { config, name, otherKey, parts } = samples;
  const sender = senderOf(config);

  describe(`request verification (sample: ${name})`, () => {
    it("accepts the sample request", async () => {
      expect(await isVerified(sender, parts)).toBe(true);
    });

    it("rejects a request when any byte of its body is changed, added or removed", async ({ skip }) => {
      if (samples.bodyIsNotSigned !== undefined) return skip(samples.bodyIsNotSigned);
      const whole = Buffer.from(parts.body ?? "");
      for (let at = 0; at < whole.length; at++) {
        const body = Buffer.from(whole);
        body.writeUInt8((body.readUInt8(at) ^ 1) & 0xff, at);
        expect([at, await isVerified(sender, { ...parts, body })]).toEqual([at, false]);
      }
      for (const body of [Buffer.concat([whole, Buffer.from("x")]), whole.subarray(0, -1)]) {
        expect(await isVerified(sender, { ...parts, body })).toBe(false);
      }
    });

    it("rejects a request that was signed with another key", async ({ skip }) => {
      if ("none" in otherKey) return skip(otherKey.none);
      expect(await isVerified(senderOf(otherKey.config), parts)).toBe(false);
    });

    it("rejects a request without headers and query, and reports a reason", async ({ skip }) => {
      if (samples.needsNothing !== undefined) return skip(samples.needsNothing);
      for (const bare of [{ body: parts.body ?? "" }, {}]) {
        const verified = await sender.verify(requestOf({ ...bare, arrivedAtMs: parts.arrivedAtMs ?? 0 }));
        expect(verified.ok ? "" : verified.error.message).not.toBe("");
      }
    });

    it("removes the credentials that it has checked from the request", async ({ skip }) => {
      if (samples.needsNothing !== undefined) return skip(samples.needsNothing);
      const verified = await sender.verify(requestOf(parts));
      const named = (values: object, query: object): number => Object.keys({ ...values, ...query }).length;
      const passed = verified.ok ? named(verified.value.headers, verified.value.query) : Number.NaN;
      expect(passed).toBeLessThan(named(parts.headers ?? {}, queryValues(parts.target ?? "")));
    });
  });
}
