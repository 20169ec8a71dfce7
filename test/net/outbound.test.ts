import { createServer } from "node:net";
import { PassThrough } from "node:stream";
import {
  brotliCompressSync,
  constants,
  createZstdCompress,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { describe, expect, it } from "vitest";
import { readWhole } from "../../src/net/body.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { OutboundError, type OutboundLimits } from "../../src/net/outbound.ts";
import { listenLocally } from "../support/local-server.ts";
import { openedOutbound } from "./support.ts";

const { signal } = new AbortController();
const { call, outbound, server } = openedOutbound();
/** Reads a response as a stream. */
const openText = async (path: string, limits: OutboundLimits = {}) => {
  const { body } = await outbound.open(
    { method: "GET", url: server.urlFor(path), headers: {} },
    { signal, ...limits },
  );
  return String(await readWhole(body));
};

describe("the response to an outbound call", () => {
  it("contains the status, the body, every value of a repeated header, and the URL without its fragment", async () => {
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
  ])("is decompressed if it has the content encoding %s", async (encoding, body) => {
    await server.forGet("/a").thenReply(200, body, { "content-encoding": encoding });
    expect(String((await call("/a")).body)).toBe("text");
    await server.forGet("/a").thenReply(200, body, { "content-encoding": encoding });
    expect(await openText("/a")).toBe("text");
  });

  it.each([
    ["no body", 204, undefined],
    ["an empty body", 200, ""],
  ])("has an empty body if it declares a content encoding and has %s", async (_, status, body) => {
    await server.forAnyRequest().thenReply(status, body, { "content-encoding": "gzip" });
    expect((await call("/a")).body).toHaveLength(0);
    expect((await call("/a", { method: "HEAD" })).body).toHaveLength(0);
  });

  it.each([
    ["is truncated", gzipSync("text".repeat(100)).subarray(0, 20)],
    ["has another format", Buffer.from("text")],
  ])("is rejected as a protocol error if its compressed body %s", async (_, body) => {
    await server.forAnyRequest().thenReply(200, body, { "content-encoding": "gzip" });
    await expect(call("/a")).rejects.toMatchObject({ code: "protocol" });
    await expect(openText("/a")).rejects.toMatchObject({ code: "protocol" });
  });

  it("is rejected if its decompressed body exceeds the limit, which is 10 MiB by default", async () => {
    const bomb = gzipSync(Buffer.alloc(11 * 1024 * 1024));
    await server.forAnyRequest().thenReply(200, bomb, { "content-encoding": "gzip" });
    await expect(call("/a", {}, { maxBytes: 100_000 })).rejects.toMatchObject({ code: "tooLarge" });
    await expect(call("/a")).rejects.toMatchObject({ code: "tooLarge" });
  });

  it("is rejected as a protocol error if its zstd window exceeds 8 MiB", async () => {
    const compressor = createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: 27 } });
    compressor.end("text");
    const body = Buffer.concat(await compressor.toArray());
    await server.forAnyRequest().thenReply(200, body, { "content-encoding": "zstd" });
    await expect(call("/a")).rejects.toMatchObject({ code: "protocol" });
  });

  it("is accepted at exactly the maximum size, and rejected at one byte more", async () => {
    await server.forAnyRequest().thenReply(200, Buffer.alloc(1_000));
    expect((await call("/a", {}, { maxBytes: 1_000 })).body).toHaveLength(1_000);
    await expect(call("/a", {}, { maxBytes: 999 })).rejects.toMatchObject({ code: "tooLarge" });
  });
});

describe("an outbound call", () => {
  it("fails with the code reset if the connection breaks before or during the response", async () => {
    await server.forGet("/reset").thenResetConnection();
    await server.forGet("/close").thenCloseConnection();
    await expect(call("/reset")).rejects.toMatchObject({ name: "OutboundError", code: "reset" });
    await expect(call("/close")).rejects.toMatchObject({ code: "reset" });
    const half = createServer((socket) => {
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"));
    });
    await using local = await listenLocally(half);
    const url = `${local.origin}/`;
    await expect(call("", { url })).rejects.toMatchObject({ code: "reset" });
    const { body } = await outbound.open({ method: "GET", url, headers: {} }, { signal });
    await expect(readWhole(body)).rejects.toMatchObject({ code: "reset" });
  });

  it("fails with the code refused if no server listens, or a TLS error if the server speaks plain HTTP", async () => {
    await expect(call("", { url: "http://127.0.0.1:1/" })).rejects.toMatchObject({ code: "refused" });
    const plain = server.urlFor("/").replace("http:", "https:");
    await expect(call("", { url: plain })).rejects.toMatchObject({
      code: expect.stringMatching(/tls|reset/),
    });
  });

  it("fails with the code timeout if the headers, the next bytes or the end arrive too late", async () => {
    await server.forGet("/silent").thenTimeout();
    const head = { headTimeoutMs: 30 };
    await expect(call("/silent", {}, head)).rejects.toMatchObject({ code: "timeout" });
    await expect(openText("/silent", head)).rejects.toMatchObject({ code: "timeout" });

    const stalled = new PassThrough();
    stalled.write("start");
    await server.forGet("/stalled").thenStream(200, stalled);
    await expect(call("/stalled", {}, { idleTimeoutMs: 30 })).rejects.toMatchObject({ code: "timeout" });

    const endless = new PassThrough();
    const drip = setInterval(() => endless.write("."), 5);
    await server.forGet("/endless").thenStream(200, endless);
    await expect(call("/endless", {}, { totalTimeoutMs: 60 })).rejects.toMatchObject({ code: "timeout" });
    clearInterval(drip);
    for (const stream of [stalled, endless]) stream.destroy();
  });

  it("fails with the code timeout if no connection is established in time", async () => {
    await using unresolving = createOutbound({ allowNetworks: [], lookup: () => {} });
    const request = { method: "GET", url: "http://silent.example/", headers: {} };
    await expect(unresolving.request(request, { signal, connectTimeoutMs: 30 })).rejects.toMatchObject({
      code: "timeout",
    });
  });

  it("rejects with the signal's reason if the caller aborts it", async () => {
    await server.forGet("/silent").thenTimeout();
    const reason = new Error("enough");
    const controller = new AbortController();
    const request = { method: "GET", url: server.urlFor("/silent"), headers: {} };
    const running = outbound.request(request, { signal: controller.signal });
    const opening = outbound.open(request, { signal: controller.signal });
    const settled = Promise.allSettled([running, opening]);
    controller.abort(reason);
    expect(await settled).toEqual([
      { status: "rejected", reason },
      { status: "rejected", reason },
    ]);
    await expect(outbound.request(request, { signal: controller.signal })).rejects.toBe(reason);
  });

  it("fails with an error that reveals neither the query nor the header values of the request", async () => {
    const secret = "hush";
    const request = { url: `http://127.0.0.1:1/?key=${secret}`, headers: { authorization: secret } };
    const failed = await call("", request).catch((error: Error) => error);
    expect(failed).toBeInstanceOf(OutboundError);
    expect((failed as Error).stack).not.toContain(secret);
    const split = { headers: { "x-key": `${secret}\r\nx: y` } };
    const rejected = await call("/a", split).catch((error: Error) => error);
    expect(rejected).toMatchObject({ code: "protocol" });
    expect((rejected as Error).stack).not.toContain(secret);
  });
});

describe("the request of an outbound call", () => {
  it("has the host of its URL as its Host header, and sends each header once", async () => {
    const seen = await server.forGet("/a").thenReply(200);
    const headers = { Host: "evil.example", "X-Key": "1", "x-key": "2" };
    await call("/a", { headers });
    const url = server.urlFor("/a");
    await outbound.open({ method: "GET", url, headers: { host: "evil.example" } }, { signal });
    const requests = await seen.getSeenRequests();
    expect(requests.map((request) => request.headers.host)).toEqual(Array(2).fill(new URL(server.url).host));
    expect(requests[0]?.headers["x-key"]).toBe("2");
  });
});
