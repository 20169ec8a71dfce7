import { expect, it } from "vitest";
import { createRedact, redactTexts } from "../../../src/lib/secrets/redact.ts";

it("redaction replaces secrets in texts, even in JSON-escaped or URL-encoded form", () => {
  const secret = 's3cret "ü"/';
  const redact = createRedact([secret]);
  const spelled = [secret, JSON.stringify({ secret }), `a=${encodeURIComponent(secret)}&b=1`];
  expect(spelled.map(redact)).toEqual(["***", '{"secret":"***"}', "a=***&b=1"]);
  expect(redact(JSON.stringify({ data: JSON.stringify({ secret }) }))).not.toContain("s3cret");
});

it("redaction replaces a secret completely, even if the secret begins with another secret", () => {
  expect(createRedact(["abcdefgh", "abcdefgh-and-more"])("x abcdefgh-and-more abcdefgh")).toBe("x *** ***");
});

it("redaction does not replace very short secrets and numbers, because they also occur by coincidence", () => {
  expect(createRedact(["true", "12345678", "1e-10000000"])("true 12345678 1e-10000000")).toBe(
    "true 12345678 1e-10000000",
  );
});

it("redaction of a JSON value replaces secrets in all strings and keeps numbers exactly as written", () => {
  const exact = (JSON as typeof JSON & { rawJSON(text: string): unknown }).rawJSON("1.00");
  const value = { a: ["x-secret-x", 1], b: { c: "secret-secret", exact }, d: null };
  expect(JSON.stringify(redactTexts(value, createRedact(["secret-secret", "x-secret-x"])))).toBe(
    '{"a":["***",1],"b":{"c":"***","exact":1.00},"d":null}',
  );
});
