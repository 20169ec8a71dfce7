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

const TOKEN = "ab/c+d=ef gh";

it.each([
  ["an escaped slash in JSON", String.raw`{"token":"ab\/c+d=ef gh"}`, '{"token":"***"}'],
  ["Unicode escapes in JSON", String.raw`{"token":"\u0061b/c\u002Bd=ef gh"}`, '{"token":"***"}'],
  [
    "JSON in a string of JSON",
    JSON.stringify({ a: String.raw`{"t":"ab\/c\u002bd=ef gh"}` }),
    String.raw`{"a":"{\"t\":\"***\"}"}`,
  ],
  ["escapes of letters in a form", "x=1&token=%61b%2fc%2Bd%3def+gh", "x=1&token=***"],
  ["a form with another invalid escape", "token=%61b%2fc%2Bd%3def%20gh%E9", "token=***%EF%BF%BD"],
  ["a part of a longer value", String.raw`{"a":"x ab\/c+d=ef gh y"}`, '{"a":"x *** y"}'],
  ["an address", "https://a.example/x?token=ab%2Fc%2bd%3Def%20gh&b=1", "https://a.example/x?token=***&b=1"],
])("redaction finds a secret that is spelled with %s", (_, text, redacted) => {
  expect(createRedact([TOKEN])(text)).toBe(redacted);
});

it("redaction does not change texts that contain no secret, however they are spelled", () => {
  const redact = createRedact([TOKEN], { wholeValues: ["7"] });
  for (const text of [
    String.raw`{"a":"\/\u002B","b":1.0}`,
    "a=%61+%zz&b=17",
    String.raw`broken "\x`,
    "100% \\",
  ])
    expect(redact(text)).toBe(text);
});

it("redaction hides a short value where it is the whole value, but not within other texts", () => {
  const redact = createRedact([], { wholeValues: ["1234"] });
  expect(redact('{"token":"1234","b":"12345","c":[1234]}')).toBe('{"token":"***","b":"12345","c":[1234]}');
  expect(redact(String.raw`{"token":"\u0031234"}`)).toBe('{"token":"***"}');
  expect(redact("token=1234&b=12345&c=%31234")).toBe("token=***&b=12345&c=***");
  expect(redact("1234")).toBe("***");
});

it("redaction applies a further function to decoded texts too", () => {
  const redact = createRedact([], { andThen: (text) => text.replaceAll("hidden", "-") });
  expect(redact(String.raw`"hi\u0064den" a=%68idden`)).toBe('"-" a=-');
});
