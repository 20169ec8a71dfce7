import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { UnavailableError } from "../../src/lib/errors.ts";
import { boundWaiting } from "../../src/verify/keys/bounded-waiting.ts";
import { createKeyCaches, type FetchPinned } from "../../src/verify/keys/key-cache.ts";
import { parsePublicKeys } from "../../src/verify/keys/parse-keys.ts";
import { compilePin } from "../../src/verify/keys/pinned-url.ts";
import { compileBodyPath } from "../../src/verify/message/body-path.ts";

const pem = (): string =>
  generateKeyPairSync("ed25519").publicKey.export({ format: "pem", type: "spki" }).toString();
const URL_1 = "https://keys.example.com/1";
const MINUTE_MS = 60_000;

/** Creates a key cache whose fetches call `respond`. `calls` contains the fetched URLs. */
function createTestCache(respond: () => string | Promise<string>) {
  const calls: string[] = [];
  const fetchPinned: FetchPinned = async (url) => {
    calls.push(url);
    return Buffer.from(await respond());
  };
  const keysOf = createKeyCaches(fetchPinned);
  return { calls, keysOf, keys: keysOf("org_1") };
}
const fail = (): never => {
  throw new Error("away");
};

describe("the cache of public keys fetched from senders", () => {
  it("fetches keys once for concurrent requests, and then caches them for an hour", async () => {
    const { calls, keys } = createTestCache(pem);
    const both = await Promise.all([keys.get(URL_1, 0), keys.get(URL_1, 0)]);
    expect(both[0]).toBe(both[1]);
    expect(keys.get(URL_1, 59 * MINUTE_MS)).toBe(both[0]);
    expect(calls).toEqual([URL_1]);
    expect(await keys.get(URL_1, 60 * MINUTE_MS)).not.toBe(both[0]);
    expect(calls.length).toBe(2);
  });

  it("rejects requests of a channel if 64 of its requests already wait for keys, without affecting other channels", async () => {
    const fetching = Promise.withResolvers<string>();
    const { keys } = createTestCache(() => fetching.promise);
    const [channel, other] = [boundWaiting(keys), boundWaiting(keys)];
    const waiting = Array.from({ length: 64 }, () => channel.get(URL_1, 0));
    await expect(async () => channel.get(URL_1, 0)).rejects.toThrow(UnavailableError);
    await expect(channel.renew(URL_1, 0)).rejects.toThrow(UnavailableError);
    const others = other.get(URL_1, 0);
    fetching.resolve(pem());
    const [found] = await Promise.all([...waiting, others]);
    // Cached keys are returned directly, and the completed requests no longer count toward the limit.
    expect(channel.get(URL_1, 0)).toBe(found);
    await expect(
      Promise.all(Array.from({ length: 64 }, () => channel.renew(URL_1, MINUTE_MS))),
    ).resolves.toHaveLength(64);
  });

  it("returns cached keys for up to a day while no new keys can be fetched", async () => {
    let respond: () => string = pem;
    const { keys } = createTestCache(() => respond());
    const first = await keys.get(URL_1, 0);
    respond = fail;
    expect(await keys.get(URL_1, 23 * 60 * MINUTE_MS)).toBe(first);
    await expect(async () => keys.get(URL_1, 24 * 60 * MINUTE_MS)).rejects.toThrow(UnavailableError);
  });

  it("waits 30 seconds before it repeats a failed fetch", async () => {
    const { calls, keys } = createTestCache(fail);
    const get = async (nowMs: number) => keys.get(URL_1, nowMs);
    await expect(get(0)).rejects.toThrow(UnavailableError);
    await expect(get(29_999)).rejects.toThrow(UnavailableError);
    expect(calls.length).toBe(1);
    await expect(get(30_000)).rejects.toThrow(UnavailableError);
    expect(calls.length).toBe(2);
  });

  it("renews keys at most every 30 seconds, and keeps the old keys if the renewal fails", async () => {
    let respond: () => string = pem;
    const { calls, keys } = createTestCache(() => respond());
    const first = await keys.get(URL_1, 0);
    expect(await keys.renew(URL_1, 29_999)).toBe(undefined);
    expect(calls.length).toBe(1);
    const renewed = await keys.renew(URL_1, 30_000);
    expect(renewed).not.toBe(first);
    respond = fail;
    await expect(keys.renew(URL_1, 60_000)).rejects.toThrow(UnavailableError);
    await expect(keys.renew(URL_1, 89_999)).rejects.toThrow(UnavailableError);
    expect(calls.length).toBe(3);
    expect(await keys.get(URL_1, 60_000)).toBe(renewed);
    respond = pem;
    expect(await keys.renew(URL_1, 90_000)).not.toBe(undefined);
    expect(await keys.renew(URL_1, 90_001)).toBe(undefined);
  });

  it("applies an organization's configured limit of concurrent fetches", async () => {
    const { promise } = Promise.withResolvers<never>();
    const keysOf = createKeyCaches(
      () => promise,
      (id) => (id === "org_small" ? 1 : undefined),
    );
    void keysOf("org_small").get(URL_1, 0);
    const second = (id: string) => keysOf(id).get("https://keys.example.com/2", 0);
    await expect(async () => second("org_small")).rejects.toThrow(UnavailableError);
    for (const url of [URL_1, "https://keys.example.com/3"]) void keysOf("org_2").get(url, 0);
    expect(second("org_2")).toBeInstanceOf(Promise);
  });

  it("allows 256 concurrent fetches for an organization whose limit is unlimited", async () => {
    const { promise } = Promise.withResolvers<never>();
    const keys = createKeyCaches(
      () => promise,
      () => undefined,
    )("org_1");
    const fetchFrom = (n: number) => keys.get(`https://keys.example.com/${n}`, 0);
    for (let n = 0; n < 256; n++) expect(fetchFrom(n)).toBeInstanceOf(Promise);
    await expect(async () => fetchFrom(256)).rejects.toThrow(UnavailableError);
  });

  it("allows 16 concurrent fetches per organization by default, and counts each organization separately", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    let respond: () => string | Promise<string> = pem;
    const { calls, keys, keysOf } = createTestCache(() => respond());
    await keys.get(URL_1, -60_000);
    respond = () => promise;
    const pending = Array.from({ length: 16 }, (_, i) => keys.get(`https://hang.example.com/${i}`, 0));
    const excess = ["https://hang.example.com/16", "https://hang.example.com/17"];
    for (const url of excess) await expect(async () => keys.get(url, 0)).rejects.toThrow(UnavailableError);
    await expect(keys.renew(URL_1, 0)).rejects.toThrow(UnavailableError);
    expect(calls.length).toBe(17);
    respond = pem;
    const other = keysOf("org_2");
    for (const url of [...excess, URL_1]) expect((await other.get(url, 0)).length).toBe(1);
    const again = keysOf("org_1");
    await expect(async () => again.get("https://hang.example.com/16", 0)).rejects.toThrow(UnavailableError);
    resolve(pem());
    expect((await Promise.all(pending)).length).toBe(16);
    await keys.get("https://keys.example.com/33", 0);
  });

  it("rejects a key set with more than 64 keys", () => {
    const { publicKey } = generateKeyPairSync("ed25519");
    const set = (count: number) =>
      JSON.stringify({ keys: Array(count).fill(publicKey.export({ format: "jwk" })) });
    expect(parsePublicKeys(set(64))?.length).toBe(64);
    expect(parsePublicKeys(set(65))).toBe(undefined);
    expect(parsePublicKeys(publicKey.export({ format: "pem", type: "spki" }).toString().repeat(65))).toBe(
      undefined,
    );
  });

  it.each([
    "",
    "{}",
    "[]",
    "{",
    "null",
    "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
    "AAAA",
    '{"keys":[]}',
  ])("rejects a response that contains no public key: %j", (text) => {
    expect(parsePublicKeys(text)).toBe(undefined);
  });
});

describe("a URL pattern that pins where keys may be fetched", () => {
  const matches = (pin: string, url: string): boolean => {
    const compiled = compilePin(pin);
    if (!compiled.ok) throw new Error(compiled.error);
    return compiled.value(url);
  };
  const pin = "https://sns.*.amazonaws.com/SimpleNotificationService-*.pem";

  it("can contain wildcards, each for one host label or within one path segment", () => {
    expect(matches(pin, "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-ab12.pem")).toBe(true);
    expect(matches("https://api.example.com/certs/*", "https://api.example.com/certs/a.b_c-1")).toBe(true);
    expect(matches("https://api.example.com/", "https://api.example.com/")).toBe(true);
    expect(matches("https://api.example.com/v*/certs/*.pem", "https://api.example.com/v1/certs/a.pem")).toBe(
      true,
    );
  });

  it("does not match the host of a storage bucket that anyone could create", () => {
    for (const storage of ["s3", "s3-us-west-2", "s3-website-us-east-1"]) {
      const bucket = `https://sns.${storage}.amazonaws.com/SimpleNotificationService-ab12.pem`;
      expect(matches(pin, bucket)).toBe(false);
    }
  });

  it("matches any query string if it ends with ?*", () => {
    const any = "https://sns.*.amazonaws.com/?*";
    expect(matches(any, "https://sns.a.amazonaws.com/?Action=Confirm&TopicArn=arn:aws:sns:a:1:b")).toBe(true);
    expect(matches(any, "https://sns.a.amazonaws.com/")).toBe(false);
    expect(matches(any, "https://sns.a.amazonaws.com/x?Action=Confirm")).toBe(false);
    expect(matches(any, "https://sns.a.amazonaws.com/?Action=Confirm#x")).toBe(false);
    expect(matches(any, `https://sns.a.amazonaws.com/?${"x".repeat(4_096)}`)).toBe(false);
  });

  it.each([
    "http://sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem",
    "https://sns.us-east-1.amazonaws.com.evil.test/SimpleNotificationService-a.pem",
    "https://evil.test/sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem",
    "https://sns.evil.test/x.amazonaws.com/SimpleNotificationService-a.pem",
    "https://sns.a.b.amazonaws.com/SimpleNotificationService-a.pem",
    "https://sns.us-east-1.amazonaws.com/x/SimpleNotificationService-a.pem",
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-a/../x.pem",
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-%2e%2e%2fx.pem",
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem?x=.pem",
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem#x",
    "https://sns.us-east-1.amazonaws.com:8443/SimpleNotificationService-a.pem",
    "https://user@sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem",
    "https://sns.us-east-1.amazonaws.com@evil.test/SimpleNotificationService-a.pem",
    "https://sns.us-east-1.amazonaws.com\\@evil.test/SimpleNotificationService-a.pem",
    "https://SNS.us-east-1.amazonaws.com/SimpleNotificationService-a.pem",
    " https://sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem",
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-a.pem\n",
  ])("does not match %s", (url) => {
    expect(matches(pin, url)).toBe(false);
  });

  it.each([
    "https://*/x",
    "https://*.com/x",
    "https://a.*/x",
    "https://example.*.com:1/",
    "https://a*.example.com/",
    "http://a.example.com/",
    "https://example.com",
    "https://u@example.com/",
    "https://example.com/a?b",
    "https://localhost/x",
    // Several wildcards separated by dashes would cause backtracking. Matching a URL of 200 characters could take days.
    "https://a.example.com/*-*-*-*-*-*-*-*/x",
  ])("is rejected if it is too broad or malformed: %s", (text) => {
    expect(compilePin(text).ok).toBe(false);
  });
});

describe("a path to credentials in a request body", () => {
  const read = (path: string, value: unknown) => {
    const compiled = compileBodyPath(path);
    return compiled.ok ? compiled.value(value) : compiled.error;
  };
  const value = JSON.parse('{"a":{"b c":[1,{"d":null}]},"__proto__":{"x":1}}');

  it.each([
    ["$", [value]],
    ["$.a['b c'][0]", [1]],
    ['$.a["b c"][1].d', [null]],
    ["$.a['b c'][*]", [1, { d: null }]],
    ["$.a.none.b", []],
    ["$.a['b c'][2]", []],
    ["$.a['b c'].length", []],
    ["$.constructor", []],
    ["$['__proto__'].x", [1]],
  ])("selects the expected values with %s", (path, values) => {
    expect(read(path, value)).toEqual(values);
  });

  it.each([
    "a",
    "",
    "$.",
    "$..a",
    "$[?@.a]",
    "$[-1]",
    "$[01]",
    "$['a",
    "$.a b",
    "$[0:1]",
  ])("is rejected if it is %j", (path) => {
    expect(read(path, {})).toEqual(expect.any(String));
  });

  it("selects nothing if it matches more than 1,000 values", () => {
    const wide = { v: Array.from({ length: 1_001 }, () => ({ t: 1 })) };
    expect(read("$.v[*].t", wide)).toEqual([]);
  });
});
