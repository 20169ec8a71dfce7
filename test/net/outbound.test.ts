import { type AddressInfo, createServer } from "node:net";
import { PassThrough } from "node:stream";
import {
  brotliCompressSync,
  constants,
  createZstdCompress,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { getLocal, type Mockttp } from "mockttp";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOutbound } from "../../src/net/create-outbound.ts";
import {
  type Outbound,
  OutboundError,
  type OutboundLimits,
  type OutboundRequest,
} from "../../src/net/outbound.ts";

let server: Mockttp;
let other: Mockttp;
let outbound: Outbound & AsyncDisposable;
beforeAll(async () => {
  [server, other] = [getLocal(), getLocal()];
  await Promise.all([server.start(), other.start()]);
  outbound = createOutbound({ allowNetworks: ["127.0.0.0/8", "::1/128"] });
});
afterAll(async () => {
  await outbound[Symbol.asyncDispose]();
  await Promise.all([server.stop(), other.stop()]);
});
beforeEach(() => {
  server.reset();
  other.reset();
});

const { signal } = new AbortController();
const call = (path: string, more: Partial<OutboundRequest> = {}, limits: OutboundLimits = {}) =>
  outbound.request({ method: "GET", url: server.urlFor(path), headers: {}, ...more }, { signal, ...limits });
const fetchText = async (path: string, limits: OutboundLimits = {}) =>
  (await outbound.fetch(limits)(server.urlFor(path))).text();

describe("an answer", () => {
  it("comes with status, headers, each value of a repeated one, and where it came from", async () => {
    await server.forGet("/a").thenReply(404, "none", { "X-Two": ["1", "2"] as never, "X-One": "1" });
    const { status, headers, url, body } = await call("/a#part");
    expect({ status, url, body: String(body) }).toEqual({
      status: 404,
      url: server.urlFor("/a"),
      body: "none",
    });
    expect(headers).toMatchObject({ "x-two": ["1", "2"], "x-one": "1" });
  });

  it.each([
    ["gzip", gzipSync("text")],
    ["deflate", deflateSync("text")],
    ["br", brotliCompressSync("text")],
    ["zstd", zstdCompressSync("text")],
    ["identity", Buffer.from("text")],
    ["gzip, br", brotliCompressSync(gzipSync("text"))],
  ])("is decoded: %s", async (encoding, body) => {
    await server.forGet("/a").thenReply(200, body, { "content-encoding": encoding });
    expect(String((await call("/a")).body)).toBe("text");
    await server.forGet("/a").thenReply(200, body, { "content-encoding": encoding });
    expect(await fetchText("/a")).toBe("text");
  });

  it.each([
    ["no body", 204, undefined],
    ["an empty body", 200, ""],
  ])("that says it is encoded and has %s is empty", async (_, status, body) => {
    await server.forAnyRequest().thenReply(status, body, { "content-encoding": "gzip" });
    expect((await call("/a")).body).toHaveLength(0);
    expect((await call("/a", { method: "HEAD" })).body).toHaveLength(0);
  });

  it.each([
    ["is cut short", gzipSync("text".repeat(100)).subarray(0, 20)],
    ["is something else", Buffer.from("text")],
  ])("whose encoded body %s is no answer", async (_, body) => {
    await server.forAnyRequest().thenReply(200, body, { "content-encoding": "gzip" });
    await expect(call("/a")).rejects.toMatchObject({ code: "protocol" });
    await expect(fetchText("/a")).rejects.toMatchObject({ code: "protocol" });
  });

  it("is bounded after it is decoded, and a bomb is not unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    await server.forAnyRequest().thenReply(200, bomb, { "content-encoding": "gzip" });
    const before = process.memoryUsage().arrayBuffers;
    await expect(call("/a", {}, { maxBytes: 100_000 })).rejects.toMatchObject({ code: "tooLarge" });
    await expect(fetchText("/a", { maxBytes: 100_000 })).rejects.toMatchObject({ code: "tooLarge" });
    await expect(call("/a")).rejects.toMatchObject({ code: "tooLarge" });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(48 * 1024 * 1024);
  });

  it("that wants a larger window than it may is not decoded", async () => {
    const compressor = createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: 27 } });
    compressor.end("text");
    const body = Buffer.concat(await compressor.toArray());
    await server.forAnyRequest().thenReply(200, body, { "content-encoding": "zstd" });
    await expect(call("/a")).rejects.toMatchObject({ code: "protocol" });
  });

  it("of just the bound is an answer", async () => {
    await server.forAnyRequest().thenReply(200, Buffer.alloc(1_000));
    expect((await call("/a", {}, { maxBytes: 1_000 })).body).toHaveLength(1_000);
    await expect(call("/a", {}, { maxBytes: 999 })).rejects.toMatchObject({ code: "tooLarge" });
  });
});

describe("a call that brings no answer says why", () => {
  it("when the connection breaks, before and in the middle of the answer", async () => {
    await server.forGet("/reset").thenResetConnection();
    await server.forGet("/close").thenCloseConnection();
    await expect(call("/reset")).rejects.toMatchObject({ name: "OutboundError", code: "reset" });
    await expect(call("/close")).rejects.toMatchObject({ code: "reset" });
    const half = createServer((socket) => {
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"));
    });
    await new Promise<void>((resolve) => half.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(half.address() as AddressInfo).port}/`;
    await expect(call("", { url })).rejects.toMatchObject({ code: "reset" });
    await expect((await outbound.fetch()(url)).text()).rejects.toMatchObject({ code: "reset" });
    half.close();
  });

  it("when nobody listens, or speaks TLS", async () => {
    await expect(call("", { url: "http://127.0.0.1:1/" })).rejects.toMatchObject({ code: "refused" });
    const plain = server.urlFor("/").replace("http:", "https:");
    await expect(call("", { url: plain })).rejects.toMatchObject({
      code: expect.stringMatching(/tls|reset/),
    });
  });

  it("when the head, the next bytes, or the end do not come in time", async () => {
    await server.forGet("/silent").thenTimeout();
    const head = { headTimeoutMs: 30 };
    await expect(call("/silent", {}, head)).rejects.toMatchObject({ code: "timeout" });
    await expect(fetchText("/silent", head)).rejects.toMatchObject({ code: "timeout" });

    const stalled = new PassThrough();
    stalled.write("begun");
    await server.forGet("/stalled").thenStream(200, stalled);
    await expect(call("/stalled", {}, { idleTimeoutMs: 30 })).rejects.toMatchObject({ code: "timeout" });

    const endless = new PassThrough();
    const drip = setInterval(() => endless.write("."), 5);
    await server.forGet("/endless").thenStream(200, endless);
    await expect(call("/endless", {}, { totalTimeoutMs: 60 })).rejects.toMatchObject({ code: "timeout" });
    clearInterval(drip);
    for (const stream of [stalled, endless]) stream.destroy();
  });

  it("when no connection comes about", async () => {
    // TEST-NET-1 (RFC 5737): routed nowhere, or refused at once.
    await using wide = createOutbound({ allowNetworks: ["192.0.2.0/24"] });
    const request = { method: "GET", url: "http://192.0.2.1/", headers: {} };
    await expect(wide.request(request, { signal, connectTimeoutMs: 30 })).rejects.toMatchObject({
      code: expect.stringMatching(/timeout|refused/),
    });
  });

  it("unless its signal did: then the signal's reason", async () => {
    await server.forGet("/silent").thenTimeout();
    const reason = new Error("enough");
    const controller = new AbortController();
    const request = { method: "GET", url: server.urlFor("/silent"), headers: {} };
    const running = outbound.request(request, { signal: controller.signal });
    const fetching = outbound.fetch()(request.url, { signal: controller.signal });
    const settled = Promise.allSettled([running, fetching]);
    controller.abort(reason);
    expect(await settled).toEqual([
      { status: "rejected", reason },
      { status: "rejected", reason },
    ]);
    await expect(outbound.request(request, { signal: controller.signal })).rejects.toBe(reason);
  });

  it("without what the address and the headers hold", async () => {
    const secret = "hush";
    const request = { url: `http://127.0.0.1:1/?key=${secret}`, headers: { authorization: secret } };
    const failed = await call("", request).catch((error: Error) => error);
    expect(failed).toBeInstanceOf(OutboundError);
    expect((failed as Error).stack).not.toContain(secret);
    const split = { headers: { "x-key": `${secret}\r\nx: y` } };
    const refused = await call("/a", split).catch((error: Error) => error);
    expect(refused).toMatchObject({ code: "protocol" });
    expect((refused as Error).stack).not.toContain(secret);
  });
});

describe("a redirect", () => {
  const secrets = {
    authorization: "a",
    cookie: "b",
    "x-api-key": "c",
    accept: "text/html",
    "user-agent": "d",
  };

  it("takes all headers along on its own origin, and only harmless ones to another", async () => {
    await server.forGet("/a").thenReply(302, "", { location: "/b" });
    await server.forGet("/b").thenReply(307, "", { location: other.urlFor("/c") });
    const seenHere = await server.forGet("/never").thenReply(200);
    const there = await other.forGet("/c").thenReply(200, "there");
    const answer = await call("/a", { headers: secrets });
    expect(answer.url).toBe(other.urlFor("/c"));
    const [arrived] = await there.getSeenRequests();
    expect(arrived?.headers).toMatchObject({ accept: "text/html", "user-agent": "d" });
    for (const name of ["authorization", "cookie", "x-api-key"])
      expect(arrived?.headers).not.toHaveProperty(name);
    expect(await seenHere.getSeenRequests()).toEqual([]);
    await outbound.fetch()(server.urlFor("/a"), { headers: secrets });
    const [, fetched] = await there.getSeenRequests();
    for (const name of ["authorization", "cookie", "x-api-key"])
      expect(fetched?.headers).not.toHaveProperty(name);
  });

  it("keeps them on its own origin", async () => {
    await server.forGet("/a").thenReply(308, "", { location: "b?x=1" });
    const there = await server.forGet("/b").thenReply(200);
    await call("/a", { headers: secrets });
    expect((await there.getSeenRequests())[0]?.headers).toMatchObject(secrets);
  });

  it.each([
    [301, "POST", "GET", ""],
    [302, "POST", "GET", ""],
    [303, "POST", "GET", ""],
    [303, "PUT", "GET", ""],
    [302, "PUT", "PUT", "body"],
    [307, "POST", "POST", "body"],
    [308, "POST", "POST", "body"],
  ])("%i of a %s becomes a %s", async (status, method, becomes, body) => {
    await server
      .forAnyRequest()
      .matching(({ path }) => path === "/a")
      .thenReply(status, "", { location: "/b" });
    const there = await server
      .forAnyRequest()
      .matching(({ path }) => path === "/b")
      .thenReply(200);
    await call("/a", { method, body: "body", headers: { "content-type": "text/plain" } });
    const [arrived] = await there.getSeenRequests();
    expect([arrived?.method, await arrived?.body.getText()]).toEqual([becomes, body]);
    expect(arrived?.headers["content-type"]).toBe(body === "" ? undefined : "text/plain");
  });

  it("that would take a body to another origin is not followed", async () => {
    await server.forPost("/a").thenReply(307, "", { location: other.urlFor("/") });
    const there = await other.forAnyRequest().thenReply(200);
    await expect(call("/a", { method: "POST", body: "client_secret=x" })).rejects.toMatchObject({
      code: "redirects",
    });
    expect(await there.getSeenRequests()).toEqual([]);
  });

  it.each([
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "http://a:b@127.0.0.1/",
    "http://[",
    "data:,x",
    "javascript:0",
  ])("to %s is not followed", async (location) => {
    await server.forGet("/a").thenReply(302, "", { location });
    await expect(call("/a")).rejects.toMatchObject({ code: "redirects" });
  });

  it("is followed so many times, and is itself the answer where that is asked for", async () => {
    await server.forGet("/a").thenReply(302, "", { location: "/a" });
    await expect(call("/a", {}, { maxRedirects: 3 })).rejects.toMatchObject({ code: "redirects" });
    await expect(call("/a", {}, { maxRedirects: 0 })).rejects.toMatchObject({ code: "redirects" });
    const fetch = outbound.fetch();
    expect((await fetch(server.urlFor("/a"), { redirect: "manual" })).status).toBe(302);
    await expect(fetch(server.urlFor("/a"), { redirect: "error" })).rejects.toMatchObject({
      code: "redirects",
    });
  });

  it("without a target is an answer", async () => {
    await server.forGet("/a").thenReply(304, "");
    await server.forGet("/b").thenReply(302, "no");
    expect((await call("/a")).status).toBe(304);
    expect((await call("/b")).status).toBe(302);
  });
});

describe("a request", () => {
  it("is for whom its address names, and each of its headers stands once", async () => {
    const seen = await server.forGet("/a").thenReply(200);
    const headers = { Host: "evil.example", "X-Key": "1", "x-key": "2" };
    await call("/a", { headers });
    await outbound.fetch()(server.urlFor("/a"), { headers: { host: "evil.example" } });
    const requests = await seen.getSeenRequests();
    expect(requests.map((request) => request.headers.host)).toEqual(Array(2).fill(new URL(server.url).host));
    expect(requests[0]?.headers["x-key"]).toBe("2");
  });
});

describe("fetch", () => {
  it("is what libraries know: bodies, responses, where they came from", async () => {
    const seen = await server.forPost("/b").thenReply(200, `{"a":1}`, { "content-type": "application/json" });
    await server.forPost("/a").thenReply(307, "", { location: "/b" });
    const response = await outbound.fetch()(new URL(server.urlFor("/a")), {
      method: "POST",
      body: new URLSearchParams({ a: "b c" }),
    });
    expect(response).toMatchObject({ ok: true, status: 200, redirected: true, url: server.urlFor("/b") });
    expect(await response.json()).toEqual({ a: 1 });
    const [request] = await seen.getSeenRequests();
    expect(await request?.body.getText()).toBe("a=b+c");
    expect(request?.headers["content-type"]).toContain("application/x-www-form-urlencoded");
  });

  it("gives a stream as it comes, and leaves the socket unread while nobody reads", async () => {
    const source = new PassThrough();
    await server.forGet("/a").thenStream(200, source);
    const response = await outbound.fetch({ idleTimeoutMs: 100 })(server.urlFor("/a"));
    const reader = response.body?.getReader();
    source.write("first");
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("first");
    let written = 0;
    while (source.write(Buffer.alloc(64 * 1024)) || written < 32 * 1024 * 1024) {
      written += 64 * 1024;
      if (written > 64 * 1024 * 1024) break;
    }
    // It waits longer than the idle time: whoever does not read is not told that nothing came.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(process.memoryUsage().arrayBuffers).toBeLessThan(200 * 1024 * 1024);
    expect((await reader?.read())?.done).toBe(false);
    await reader?.cancel();
    source.destroy();
  });
});
