import { createHash, hash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findingsOf, isVerified, requestOf, senderOf, TARGET } from "../support.ts";
import { config, hex, hmac, NOW_SECONDS, verify } from "./hmac-support.ts";

describe("an HMAC signature", () => {
  const body = "Hello, World!";
  const valid = hex(body);

  it.each<[string, Record<string, string | string[]>]>([
    ["no header", {}],
    ["a repeated header", { "x-sig": [`a=${valid}`, `a=${valid}`] }],
    ["no prefix", { "x-sig": valid }],
    ["a prefix in capitals", { "x-sig": `A=${valid}` }],
    ["a shorter signature", { "x-sig": `a=${valid.slice(0, -2)}` }],
    ["a longer signature", { "x-sig": `a=${valid}00` }],
    ["an empty signature", { "x-sig": "a=" }],
    ["an empty header", { "x-sig": "" }],
    ["characters outside the encoding", { "x-sig": `a=${valid}zz` }],
    ["a space before the signature", { "x-sig": `a= ${valid}` }],
  ])("is rejected if the request has %s", async (_, headers) => {
    expect(await verify({ prefix: "a=" }, { body, headers })).toBe(false);
  });

  it("is accepted in upper-case hex, in base64 with or without padding, and in base64url", async () => {
    expect(await verify({}, { body, headers: { "x-sig": valid.toUpperCase() } })).toBe(true);
    const base64 = hmac(body).toString("base64");
    for (const text of [base64, base64.replace(/=$/, "")]) {
      expect(await verify({ encoding: "base64" }, { body, headers: { "x-sig": text } })).toBe(true);
    }
    const url = hmac(body).toString("base64url");
    expect(await verify({ encoding: "base64url" }, { body, headers: { "x-sig": url } })).toBe(true);
  });

  it("is accepted only for the signed bytes and the secret that signed them", () => {
    const isEqual = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 64 }),
        fc.uint8Array({ maxLength: 64 }),
        fc.string({ minLength: 1 }),
        (sent, other, secret) => {
          const sender = senderOf(config({}, secret));
          const headers = { "x-sig": hmac(Buffer.from(sent), secret).toString("hex") };
          const verdict = sender.verify(requestOf({ body: Buffer.from(other), headers }));
          return !(verdict instanceof Promise) && verdict.ok === isEqual(sent, other);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("is rejected if one bit is changed", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 255 }), (bit) => {
        const bytes = hmac(body);
        bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
        const verdict = senderOf(config({})).verify(
          requestOf({ body, headers: { "x-sig": bytes.toString("hex") } }),
        );
        return !(verdict instanceof Promise) && !verdict.ok;
      }),
    );
  });

  it("is verified over the raw bytes of a body that is not UTF-8", async () => {
    const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80]);
    const templated = { template: "{{body}}.x" };
    const headers = { "x-sig": hmac(Buffer.concat([bytes, Buffer.from(".x")])).toString("hex") };
    expect(await verify(templated, { body: bytes, headers })).toBe(true);
    expect(await verify(templated, { body: bytes.toString("utf8"), headers })).toBe(false);
  });

  it("can be in a query parameter, a JSON body or a form", async () => {
    const template = "{{body:$.data}}";
    const inBody = { in: "body", name: "$.sig", template, signsBody: false };
    expect(await verify({ in: "query", name: "s" }, { body, target: `${TARGET}?s=${valid}` })).toBe(true);
    expect(
      await verify({ in: "query", name: "s" }, { body, target: `${TARGET}?s=${valid}&s=${valid}` }),
    ).toBe(false);
    expect(await verify(inBody, { body: JSON.stringify({ data: "d", sig: hex("d") }) })).toBe(true);
    expect(await verify(inBody, { body: JSON.stringify({ data: "e", sig: hex("d") }) })).toBe(false);
    const form = { "content-type": "application/x-www-form-urlencoded; charset=utf-8" };
    expect(await verify(inBody, { body: `data=d&sig=${hex("d")}`, headers: form })).toBe(true);
    expect(await verify(inBody, { body: "not json" })).toBe(false);
  });

  it("can be in base64 in a query parameter, with unescaped plus signs", async () => {
    // Search for a body whose signature contains a plus sign.
    const bodies = Array.from({ length: 100 }, (_, n) => `{"n":${n}}`);
    const signed = bodies.find((each) => hmac(each).toString("base64").includes("+")) ?? "";
    const target = `${TARGET}?s=${hmac(signed).toString("base64")}`;
    const config = { in: "query", name: "s", encoding: "base64" };
    expect(await verify(config, { body: signed, target })).toBe(true);
    expect(await verify(config, { body: `${signed} `, target })).toBe(false);
  });

  it("can be in any of several headers, which are all removed from the delivery", async () => {
    const both = { alsoNamed: ["x-sig-2"] };
    expect(await verify(both, { body, headers: { "x-sig-2": valid } })).toBe(true);
    expect(await verify(both, { body, headers: { "x-sig": hex("old"), "x-sig-2": valid } })).toBe(true);
    const verified = await senderOf(config(both)).verify(
      requestOf({ body, headers: { "x-sig": valid, "x-sig-2": valid, "x-a": "1" } }),
    );
    expect(verified.ok && { ...verified.value.headers }).toEqual({ "x-a": "1" });
  });

  it.each([
    ["in UTF-8", "sécret", Buffer.from("sécret"), {}],
    [
      "decoded from base64",
      Buffer.from("key").toString("base64"),
      Buffer.from("key"),
      { encoding: "base64" },
    ],
    ["decoded from hex", "00ff", Buffer.from([0, 255]), { encoding: "hex" }],
    ["without its prefix", "whsec_a2V5", Buffer.from("key"), { encoding: "base64", stripPrefix: "whsec_" }],
    ["with a suffix", "s", Buffer.from("s&"), { append: "&" }],
    ["hashed with SHA-1", "s", createHash("sha1").update("s").digest(), { hash: "sha1" }],
  ])("is verified with a key derived from the secret %s", async (_, secret, key, settings) => {
    const sender = senderOf(config({ key: settings }, secret));
    expect(await isVerified(sender, { body, headers: { "x-sig": hmac(body, key).toString("hex") } })).toBe(
      true,
    );
    expect(await isVerified(sender, { body, headers: { "x-sig": hmac(body, "").toString("hex") } })).toBe(
      false,
    );
  });
});

describe("a signature header with several items", () => {
  const items = { items: { separator: ",", assign: "=", key: "v1" } };
  const stripe = {
    ...items,
    template: "{{timestamp}}.{{body}}",
    timestamp: { source: { in: "item", name: "t" } },
    toleranceSeconds: 300,
  };
  const sendAt = (seconds: number, ...signatures: string[]) => ({
    body: "{}",
    headers: { "x-sig": [`t=${seconds}`, ...signatures.map((signature) => `v1=${signature}`)].join(",") },
  });

  it("is accepted if any of its signatures is valid", async () => {
    const valid = hex(`${NOW_SECONDS}.{}`);
    expect(await verify(stripe, sendAt(NOW_SECONDS, valid))).toBe(true);
    expect(await verify(stripe, sendAt(NOW_SECONDS, hex("old"), valid))).toBe(true);
    expect(await verify(stripe, sendAt(NOW_SECONDS, hex("old"), "zz"))).toBe(false);
    expect(await verify(stripe, { body: "{}", headers: { "x-sig": `t=${NOW_SECONDS}, v0=${valid}` } })).toBe(
      false,
    );
    expect(
      await verify(stripe, { body: "{}", headers: { "x-sig": `v1="${valid}" , t=${NOW_SECONDS},` } }),
    ).toBe(true);
  });

  it("is rejected if it contains the timestamp twice", async () => {
    const header = `t=${NOW_SECONDS},t=${NOW_SECONDS},v1=${hex(`${NOW_SECONDS}.{}`)}`;
    expect(await verify(stripe, { body: "{}", headers: { "x-sig": header } })).toBe(false);
  });

  it("is rejected if it contains more than 16 signatures or 64 items", async () => {
    const valid = hex(`${NOW_SECONDS}.{}`);
    const old = hex("old");
    expect(await verify(stripe, sendAt(NOW_SECONDS, ...Array(15).fill(old), valid))).toBe(true);
    expect(await verify(stripe, sendAt(NOW_SECONDS, ...Array(16).fill(old), valid))).toBe(false);
    expect(await verify(stripe, sendAt(NOW_SECONDS, ...Array(64).fill("zz"), valid))).toBe(false);
  });

  it("is parsed by the position of its items if they have no keys", async () => {
    const valid = hex("{}");
    const plain = { items: { separator: ", " } };
    expect(await verify(plain, { body: "{}", headers: { "x-sig": `${hex("old")}, ${valid}` } })).toBe(true);
    const keyed = { items: { separator: "&", assign: "|" } };
    expect(await verify(keyed, { body: "{}", headers: { "x-sig": `a|${hex("old")}&b|${valid}` } })).toBe(
      true,
    );
    const placed = { ...plain, template: "{{item:0}}.{{body}}" };
    expect(await verify(placed, { body: "{}", headers: { "x-sig": `7,${hex("7.{}")}` } })).toBe(true);
  });
});

describe("a delivery with an HMAC signature", () => {
  const withId = { template: "{{id}}.{{body}}", deliveryId: { in: "header", name: "x-id" } };

  it("uses its signed id as the delivery id, and is rejected if that id is changed or empty", async () => {
    const headers = { "x-id": "d1", "x-sig": hex("d1.{}") };
    const verified = await senderOf(config(withId)).verify(requestOf({ body: "{}", headers }));
    expect(verified).toMatchObject({ ok: true, value: { deliveryId: "d1", headers: { "x-id": "d1" } } });
    expect(await verify(withId, { body: "{}", headers: { ...headers, "x-id": "d2" } })).toBe(false);
    expect(await verify(withId, { body: "{}", headers: { "x-id": "", "x-sig": hex(".{}") } })).toBe(false);
  });

  it("has a digest of the signed bytes for dedupe if bindDedupe is set", async () => {
    const sender = senderOf(config({ bindDedupe: "signedBytes" }));
    const readBoundTo = async (body: string, id: string) => {
      const verified = await sender.verify(requestOf({ body, headers: { "x-sig": hex(body), "x-id": id } }));
      return verified.ok ? verified.value.boundTo : undefined;
    };
    const first = await readBoundTo("{}", "1");
    expect(first).toMatch(/^[\w-]{43}$/);
    expect(await readBoundTo("{}", "2")).toBe(first);
    expect(await readBoundTo("[]", "1")).not.toBe(first);
  });

  it.each([
    ["only the body", undefined, true],
    ["more than the body", "{{method}}{{body}}", false],
  ])("reuses the digest of the signed bytes as its body hash only if the signature covers only the body (here: %s)", async (_, template, isReturned) => {
    const text = '{"a":1}';
    const sender = senderOf(config({ bindDedupe: "signedBytes", ...(template && { template }) }));
    const headers = { "x-sig": hex(template ? `POST${text}` : text), "x-id": "1" };
    const verified = await sender.verify(requestOf({ body: text, headers }));
    const bodyHash = verified.ok ? verified.value.bodyHash : "rejected";
    expect(bodyHash).toBe(isReturned ? hash("sha256", text, "base64url") : undefined);
  });
});

describe("invalid HMAC settings", () => {
  const path = (field: string): string => `verification.${field}`;
  it.each<[string, object, string]>([
    ["a tolerance without a timestamp", { toleranceSeconds: 5 }, "toleranceSeconds"],
    [
      "a timestamp that is not signed",
      { timestamp: { source: { in: "header", name: "t" } }, toleranceSeconds: 5 },
      "timestamp.source",
    ],
    ["a delivery id that is not signed", { deliveryId: { in: "header", name: "x-id" } }, "deliveryId"],
    [
      "a delivery id in a query that is not signed",
      { deliveryId: { in: "query", name: "id" } },
      "deliveryId",
    ],
    ["a template without the body", { template: "{{method}}" }, "template"],
    ["an unknown placeholder", { template: "{{bdy}}{{body}}" }, "template"],
    ["an unknown filter", { template: "{{body | shout}}" }, "template"],
    ["an open placeholder", { template: "{{body}}{{" }, "template"],
    [
      "a placeholder for a timestamp that is not configured",
      { template: "{{timestamp}}{{body}}" },
      "template",
    ],
    ["a template with three body placeholders", { template: "{{body}}{{body | sha1}}{{body}}" }, "template"],
    [
      "a template with too many placeholders",
      { template: "{{body}}".concat("{{method}}".repeat(32)) },
      "template",
    ],
    ["a checksum in place of the body", { template: "{{body | crc32}}" }, "template"],
    ["a parameters setting that the template does not use", { parameters: { of: "form" } }, "parameters"],
    [
      "a pair with an unknown placeholder",
      { template: "{{parameters}}", parameters: { of: "form", pair: "{{x}}" } },
      "parameters.pair",
    ],
    [
      "a hash of the body that is not signed",
      { bodyHash: { source: { in: "header", name: "h" } } },
      "bodyHash.source",
    ],
    ["an item placeholder without the items setting", { template: "{{item:t}}{{body}}" }, "template"],
    ["an item key without an assignment character", { items: { separator: ",", key: "v1" } }, "items.key"],
    [
      "an item placeholder with several signature headers",
      { items: { separator: "," }, alsoNamed: ["x"], template: "{{item:0}}{{body}}" },
      "template",
    ],
    ["a header name with a space", { name: "x sig" }, "name"],
    ["a path that does not begin with $", { in: "body", name: "sig" }, "name"],
    ["a path that filters", { in: "body", name: "$[?@.a]" }, "name"],
    ["MD5", { algorithm: "md5" }, "algorithm"],
    ["a plain hash", { construction: "plain", template: "{{secret}}{{body}}" }, "construction"],
    ["a plain hash without the secret", { construction: "plain", allowWeak: true }, "construction"],
    ["an unknown setting", { algoritm: "sha1" }, ""],
  ])("are reported with the path of the invalid field: %s", (_, verification, field) => {
    expect(Object.keys(findingsOf(config(verification)))).toContain(
      field === "" ? "verification" : path(field),
    );
  });

  it("are reported without the secret if the secret has the wrong encoding", () => {
    const findings = findingsOf(config({ key: { encoding: "hex" } }, "00", "not-hex"));
    expect(findings).toEqual({ "secrets.1.value": expect.not.stringContaining("not-hex") });
    expect(findingsOf(config({ key: { stripPrefix: "whsec_" } }, "whsec_"))).toHaveProperty([
      "secrets.0.value",
    ]);
    expect(findingsOf({ secrets: [{ value: "" }] })).toHaveProperty(["secrets.0.value"]);
    const window = { value: "a", notBefore: "2026-01-02T00:00:00Z", notAfter: "2026-01-01T00:00:00Z" };
    expect(findingsOf({ secrets: [window] })).toHaveProperty(["secrets.0.notAfter"]);
  });

  it("include weak algorithms only if allowWeak is not set", () => {
    expect(findingsOf(config({ algorithm: "md5", allowWeak: true }))).toEqual({});
    expect(findingsOf(config({ template: "{{body | crc32}}", allowWeak: true }))).toEqual({});
  });
});
