import { assert, asyncProperty, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { findingsOf, isVerified, type RequestParts, requestOf, senderOf } from "../support.ts";

const config = (verification: object, ...secrets: string[]) => ({
  verification: { scheme: "token", ...verification },
  secrets: secrets.map((value) => ({ value })),
});
const verify = (verification: object, parts: RequestParts, ...secrets: string[]): Promise<boolean> =>
  isVerified(senderOf(config(verification, ...(secrets.length > 0 ? secrets : ["s3cret"]))), parts);
const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;

describe("a secret token in a request", () => {
  it.each<[string, object, RequestParts, string?]>([
    ["a header", { name: "X-Token" }, { headers: { "x-token": "s3cret" } }],
    [
      "a header, after a prefix",
      { name: "X-Token", prefix: "Token " },
      { headers: { "x-token": "Token s3cret" } },
    ],
    ["the bearer header", { in: "bearer" }, { headers: { authorization: "bearer  s3cret" } }],
    [
      "the basic header",
      { in: "basic" },
      { headers: { authorization: basic("us:er:pässword") } },
      "us:er:pässword",
    ],
    ["a query parameter", { in: "query", name: "k" }, { target: "/hooks/x?k=s3cret" }],
    ["a JSON body", { in: "body", name: "$.token" }, { body: '{"token":"s3cret"}' }],
    [
      "each item of a body",
      { in: "body", name: "$.v[*].t" },
      { body: '{"v":[{"t":"s3cret"},{"t":"s3cret"}]}' },
    ],
    [
      "a form",
      { in: "body", name: "$.t" },
      { body: "t=s3cret", headers: { "content-type": "application/x-www-form-urlencoded" } },
    ],
    [
      "a query parameter with an unescaped plus sign",
      { in: "query", name: "k" },
      { target: "/?k=a+b/=" },
      "a+b/=",
    ],
    ["a query parameter with a space", { in: "query", name: "k" }, { target: "/?k=a+b%20c" }, "a b c"],
    [
      "a form with an unescaped plus sign",
      { in: "body", name: "$.t" },
      { body: "t=a+b", headers: { "content-type": "application/x-www-form-urlencoded" } },
      "a+b",
    ],
    ["a header in UTF-8", { name: "x-token" }, { headers: { "x-token": "é" } }, "é"],
  ])("is accepted if it is sent in %s", async (_, verification, parts, secret = "s3cret") => {
    expect(await verify(verification, parts, secret)).toBe(true);
    expect(await verify(verification, parts, `${secret}x`)).toBe(false);
    expect(await verify(verification, parts, "other", secret)).toBe(true);
    expect(await verify(verification, {})).toBe(false);
  });

  it.each<[string, object, RequestParts]>([
    ["twice", { name: "x" }, { headers: { x: ["s3cret", "s3cret"] } }],
    ["twice in a query", { in: "query", name: "k" }, { target: "/?k=s3cret&k=s3cret" }],
    ["without its prefix", { name: "x", prefix: "Token " }, { headers: { x: "s3cret" } }],
    ["with another authentication scheme", { in: "bearer" }, { headers: { authorization: "Basic s3cret" } }],
    ["with trailing text", { in: "bearer" }, { headers: { authorization: "Bearer s3cret x" } }],
    ["as an object", { in: "body", name: "$.t" }, { body: '{"t":{"a":"s3cret"}}' }],
    ["in one of two items", { in: "body", name: "$[*].t" }, { body: '[{"t":"s3cret"},{"t":"no"}]' }],
    ["next to a value that is not text", { in: "body", name: "$[*]" }, { body: '["s3cret",null]' }],
    ["in an empty array", { in: "body", name: "$[*].t" }, { body: "[]" }],
    ["under a name that objects inherit", { in: "body", name: "$.constructor" }, { body: "{}" }],
  ])("is rejected if it is sent %s", async (_, verification, parts) => {
    expect(await verify(verification, parts)).toBe(false);
  });

  it("is accepted only if it equals the channel's secret byte for byte", () =>
    assert(
      asyncProperty(string(), string({ minLength: 1 }), async (sent, secret) => {
        const accepted = await verify({ in: "body", name: "$" }, { body: JSON.stringify(sent) }, secret);
        return accepted === (sent === secret);
      }),
    ));

  it("is removed from the headers and the query of the verified delivery", async () => {
    const read = async (verification: object, parts: RequestParts) => {
      const verified = await senderOf(config(verification, "s3cret")).verify(requestOf(parts));
      return JSON.stringify(verified.ok && [verified.value.headers, verified.value.query]);
    };
    expect(await read({ name: "X-T" }, { headers: { "x-t": "s3cret" } })).toBe("[{},{}]");
    expect(await read({ in: "bearer" }, { headers: { authorization: "Bearer s3cret" } })).toBe("[{},{}]");
    expect(await read({ in: "query", name: "k" }, { target: "/?k=s3cret" })).toBe("[{},{}]");
    expect(await read({ name: "cookie", prefix: "a=" }, { headers: { cookie: "a=s3cret" } })).toBe("[{},{}]");
  });
});

it.each<[string, object, string]>([
  ["a header without a name", {}, "verification.name"],
  ["a name for the bearer header", { in: "bearer", name: "x" }, "verification.name"],
  ["a prefix for a query parameter", { in: "query", name: "k", prefix: "x" }, "verification.prefix"],
  ["a path that does not begin with $", { in: "body", name: "token" }, "verification.name"],
])("invalid token settings are rejected: %s", (_, verification, field) => {
  expect(Object.keys(findingsOf(config(verification, "s")))).toContain(field);
});
