import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { RawRequest } from "../../src/event/received.ts";
import { collectValues } from "../../src/event/values.ts";
import { lacksSecret, verificationSettings } from "../../src/verify/schemes.ts";
import { compileVerification } from "../../src/verify/verify.ts";

const settings = z.object(verificationSettings);

interface Vector {
  readonly name: string;
  readonly config: unknown;
  readonly body: string;
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const vectors: readonly Vector[] = JSON.parse(
  readFileSync(new URL("../vectors/verify/hmac.json", import.meta.url), "utf8"),
);

const request = (parts: Partial<RawRequest> & { readonly text?: string }): RawRequest => ({
  method: "POST",
  target: parts.target ?? "/",
  headers: parts.headers ?? {},
  body: parts.body ?? Buffer.from(parts.text ?? ""),
  arrivedAtMs: parts.arrivedAtMs ?? Date.parse("2026-01-01T00:00:00Z"),
});

const github = (secrets: readonly unknown[]) =>
  compileVerification(
    settings.parse({
      verification: { scheme: "hmac", name: "X-Hub-Signature-256", prefix: "sha256=" },
      secrets,
    }),
  );
const [documented] = vectors;
const signature = documented?.headers?.["x-hub-signature-256"] ?? "";
const signed = request({ text: "Hello, World!", headers: { "x-hub-signature-256": signature } });

describe("hmac", () => {
  it.each(vectors)("accepts $name", ({ config, body, target, headers }) => {
    const verify = compileVerification(settings.parse(config));
    const verified = verify(
      request({ text: body, ...(target ? { target } : {}), ...(headers ? { headers } : {}) }),
    );
    expect(verified.ok).toBe(true);
  });

  it.each(vectors)("refuses $name with one byte of the body changed", ({ config, body, target, headers }) => {
    const verify = compileVerification(settings.parse(config));
    const changed = request({
      text: `${body} `,
      ...(target ? { target } : {}),
      ...(headers ? { headers } : {}),
    });
    expect(verify(changed)).toMatchObject({ ok: false });
  });

  it.each([
    ["no header", {}],
    ["a repeated header", { "x-hub-signature-256": [signature, signature] }],
    ["no prefix", { "x-hub-signature-256": signature.slice(7) }],
    ["a shorter signature", { "x-hub-signature-256": signature.slice(0, -2) }],
    ["an empty signature", { "x-hub-signature-256": "sha256=" }],
    ["characters that are not of the encoding", { "x-hub-signature-256": `${signature}zz` }],
  ])("refuses %s", (_, headers) => {
    const verify = github([{ value: "It's a Secret to Everybody" }]);
    expect(verify({ ...signed, headers })).toMatchObject({ ok: false });
  });

  it("accepts any of several secrets, each only within its window", () => {
    const verify = github([
      { value: "old", notAfter: "2026-01-01T00:00:00Z" },
      {
        value: "It's a Secret to Everybody",
        notBefore: "2026-01-01T00:00:00Z",
        notAfter: "2026-02-01T00:00:00Z",
      },
    ]);
    expect(verify(signed).ok).toBe(true);
    expect(verify({ ...signed, arrivedAtMs: signed.arrivedAtMs - 1 }).ok).toBe(false);
    expect(verify({ ...signed, arrivedAtMs: Date.parse("2026-02-01T00:00:00Z") }).ok).toBe(false);
  });

  it("refuses everything while the channel has no secret, and says that one is missing", () => {
    const config = settings.parse({ verification: { scheme: "hmac", name: "x" } });
    expect(lacksSecret(config)).toBe(true);
    expect(compileVerification(config)(signed)).toMatchObject({ ok: false });
  });
});

describe("what a verified delivery carries", () => {
  it("holds neither the signature that was read nor any credential", () => {
    const headers = {
      "x-hub-signature-256": signature,
      authorization: "Bearer s",
      cookie: "a=b",
      "x-github-event": "push",
    };
    const verified = github([{ value: "It's a Secret to Everybody" }])({ ...signed, headers });
    expect(verified.ok && { ...verified.value.headers }).toEqual({ "x-github-event": "push" });
  });

  it("holds the query, repeated names as arrays", () => {
    const config = settings.parse({
      verification: { scheme: "hmac", in: "query", name: "s" },
      secrets: [{ value: "k" }],
    });
    const target = "/hooks/x?a=1&a=2&__proto__=p&s=4ed5cd9b4fe5d7e9fb8e6a8a6e8c2f0e";
    expect(compileVerification(config)(request({ target }))).toMatchObject({ ok: false });
    const open = compileVerification(settings.parse({}))(request({ target }));
    expect(open.ok && JSON.stringify(open.value.query)).toBe(
      '{"a":["1","2"],"__proto__":"p","s":"4ed5cd9b4fe5d7e9fb8e6a8a6e8c2f0e"}',
    );
  });

  it("holds the query without the signature that was read from it", () => {
    const config = settings.parse({
      verification: { scheme: "hmac", in: "query", name: "s" },
      secrets: [{ value: "k" }],
    });
    const s = createHmac("sha256", "k").update("{}").digest("hex");
    const verified = compileVerification(config)(request({ text: "{}", target: `/hooks/x?a=1&s=${s}&b=2` }));
    expect(verified.ok && { ...verified.value.query }).toEqual({ a: "1", b: "2" });
  });

  it("holds no header in which a proxy repeats the address", () => {
    const headers = { "x-forwarded-path": "/hooks/ch_1", "x-original-url": "/hooks/ch_1", "x-a": "1" };
    const verified = compileVerification(settings.parse({}))(request({ headers }));
    expect(verified.ok && { ...verified.value.headers }).toEqual({ "x-a": "1" });
  });

  it("believes whoever knows the address when no verification is set", () => {
    expect(compileVerification(settings.parse({}))(request({ text: "{}" })).ok).toBe(true);
  });
});

describe("collectValues", () => {
  it("treats names of the object prototype as any other", () => {
    expect(Object.keys(collectValues([["constructor", "a"]]))).toEqual(["constructor"]);
  });
});
