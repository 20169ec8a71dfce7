import { generateKeyPairSync } from "node:crypto";
import {
  anything,
  assert,
  asyncProperty,
  constantFrom,
  dictionary,
  oneof,
  string,
  uint8Array,
} from "fast-check";
import { expect } from "vitest";
import { anyText } from "../support/any-text.ts";
import { requestOf, senderOf, TARGET } from "./support.ts";

const { publicKey } = generateKeyPairSync("ed25519");
const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
const source = { in: "header", name: "x-time" };
const signed = {
  name: "x-sig",
  template:
    "{{timestamp}}.{{id}}.{{header:x-a | optional}}.{{body:$.a[*].b | optional}}.{{parameters | optional}}.{{body}}",
  timestamp: { source, unit: "rfc3339" },
  toleranceSeconds: 300,
  deliveryId: { in: "body", name: "$.id" },
  parameters: { of: "form" },
  items: { separator: ", ", assign: "=" },
  bindDedupe: "signedBytes",
};
const keys = { from: "settings", keys: [pem] };

/** Verification settings that reject every random request. */
export const hostileConfig: readonly (readonly [string, object])[] = [
  ["hmac", { scheme: "hmac", ...signed }],
  ["hmac in a body", { scheme: "hmac", in: "body", name: "$.a['b'][0]" }],
  ["hmac in a query", { scheme: "hmac", in: "query", name: "x-sig", encoding: "base64url" }],
  ["asymmetric", { scheme: "asymmetric", algorithm: "ed25519", keys, ...signed, encoding: "base64" }],
  ["standardWebhooks", { scheme: "standardWebhooks", headerPrefix: "x-" }],
  ["jwt", { scheme: "jwt", algorithms: ["EdDSA"], keys, source: { in: "header", name: "x-sig" } }],
  ["token", { scheme: "token", in: "body", name: "$[*]" }],
  ["basic", { scheme: "token", in: "basic" }],
];

const time = "2026-01-01T00:00:00Z";
const text = oneof(anyText(10), constantFrom("", time, "1767225600", "v1,AAAA", "t=1, v1=00", "a.b.c", "00"));
const header = oneof(text, constantFrom<string[]>(["a", "b"], [time, time]));
const names = constantFrom(
  "x-sig",
  "x-time",
  "x-id",
  "x-timestamp",
  "x-signature",
  "x-a",
  "authorization",
  "content-type",
  "__proto__",
);
const body = oneof(
  uint8Array().map((bytes) => Buffer.from(bytes)),
  anything().map((value) => Buffer.from(JSON.stringify(value) ?? "")),
  constantFrom('{"id":"1","a":[{"b":"00"}]}', "[[[[", '{"__proto__":{"a":1}}', "id=1&a=2&a=3", "%zz=%").map(
    Buffer.from,
  ),
);

/**
 * Sends random requests to a channel with the given verification settings.
 *
 * @throws Error if a request is accepted, or makes the verifier throw
 */
export async function expectAllRejected(verification: object, numRuns: number): Promise<void> {
  const isAsymmetric = verification === hostileConfig[3]?.[1];
  const sender = senderOf({ verification, secrets: isAsymmetric ? [] : [{ value: "c2VjcmV0c2VjcmV0" }] });
  const readsBody = "in" in verification && verification.in === "body";
  await assert(
    asyncProperty(dictionary(names, header), body, string(), async (headers, bytes, query) => {
      const request = requestOf({
        headers,
        body: bytes,
        target: `${TARGET}?x-sig=${encodeURIComponent(query.toWellFormed())}&${query}`,
      });
      const verdict = await sender.verify(request);
      if (!verdict.ok) {
        const { body } = verdict.error.redacted();
        // Only schemes that read a credential from the body change the body.
        if (!readsBody) expect(body).toBe(request.body);
      }
      return !verdict.ok;
    }),
    { numRuns },
  );
}
