import { createServer, type Socket } from "node:net";
import { createGzip } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readWhole } from "../../src/net/body.ts";
import { listenLocally } from "../support/local-server.ts";
import { openedOutbound } from "./support.ts";

const { outbound, server } = openedOutbound();

/** A server whose responses start and never end. */
async function startEndless() {
  const endless = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfirst"));
  });
  const { origin } = await listenLocally(endless);
  const closed = new Promise<void>((resolve) => {
    endless.on("connection", (socket) => socket.on("close", () => resolve()));
  });
  return {
    url: `${origin}/`,
    /** Resolves when one of the server's connections has closed. */
    closed,
    [Symbol.dispose]: () => void endless.close(),
  };
}

const get = (url: string, headers: Readonly<Record<string, string>> = {}) => ({
  method: "GET",
  url,
  headers,
});

describe("a streamed response", () => {
  it("closes its connection if it is canceled, even during a pending read", async () => {
    using endless = await startEndless();
    const { body } = await outbound.open(get(endless.url), { signal: new AbortController().signal });
    expect(Buffer.from((await body.read()) ?? []).toString()).toBe("first");
    const reading = body.read();
    await body.cancel();
    expect(await reading).toBeUndefined();
    expect(await body.read()).toBeUndefined();
    await endless.closed;
  });

  it("closes its connection and fails with the signal's reason if the signal aborts", async () => {
    using endless = await startEndless();
    const controller = new AbortController();
    const { body } = await outbound.open(get(endless.url), { signal: controller.signal });
    await body.read();
    const reading = body.read();
    controller.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
    await expect(body.read()).rejects.toThrow("enough");
    await endless.closed;
  });

  it("has a decompressed body and the URL of the last redirect", async () => {
    await server.forGet("/a").thenReply(302, "", { location: "/b" });
    await server.forGet("/b").thenReply(200, Buffer.from("H4sIAAAAAAAAA0tMSgYAwkEkNQMAAAA=", "base64"), {
      "content-encoding": "gzip",
    });
    const { signal } = new AbortController();
    const { body, status, url } = await outbound.open(get(server.urlFor("/a")), { signal });
    expect({ status, url }).toEqual({ status: 200, url: server.urlFor("/b") });
    expect(Buffer.from((await body.read()) ?? []).toString()).toBe("abc");
    expect(await body.read()).toBeUndefined();
  });

  it("can be canceled without an error after its decompression has failed", async () => {
    await server
      .forGet("/broken")
      .thenReply(200, Buffer.from("this is no gzip"), { "content-encoding": "gzip" });
    const { signal } = new AbortController();
    const { body } = await outbound.open(get(server.urlFor("/broken")), { signal });
    await expect(body.read()).rejects.toMatchObject({ name: "OutboundError", code: "protocol" });
    expect(await body.cancel()).toBeUndefined();
  });

  it("is decompressed while it arrives", async () => {
    const source = createGzip();
    await server.forGet("/a").thenStream(200, source, { "content-encoding": "gzip" });
    const { signal } = new AbortController();
    const { body } = await outbound.open(get(server.urlFor("/a")), { signal });
    for (const piece of ["first", "second"]) {
      source.write(piece);
      source.flush();
      expect(Buffer.from((await body.read()) ?? []).toString()).toBe(piece);
    }
    const reading = body.read();
    await body.cancel();
    expect(await reading).toBeUndefined();
    expect(await body.read()).toBeUndefined();
    source.destroy();
  });

  it("is not read from the socket while the caller does not read the body", async () => {
    const PIECES = 256;
    const piece = Buffer.alloc(64 * 1024);
    const sockets = new Map<string, Socket>();
    const flood = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", (head) => {
        sockets.set(/^GET (\S+)/.exec(String(head))?.[1] ?? "", socket);
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${PIECES * piece.length}\r\n\r\n`);
        for (let n = 0; n < PIECES; n++) socket.write(piece);
      });
    });
    const { origin } = await listenLocally(flood);
    const { signal } = new AbortController();
    try {
      const unread = await outbound.open(get(`${origin}/unread`), { signal });
      // Two later responses arrive completely, while the first one makes no progress.
      for (const path of ["/read", "/read-too"]) {
        const { body } = await outbound.open(get(origin + path), { signal });
        expect((await readWhole(body)).length).toBe(PIECES * piece.length);
      }
      expect(sockets.get("/unread")?.writableLength).toBeGreaterThan(0);
      await unread.body.cancel();
    } finally {
      for (const socket of sockets.values()) socket.destroy();
      flood.close();
    }
  });

  it("is never requested if a request header is invalid", async () => {
    const { signal } = new AbortController();
    const opening = outbound.open(get(server.urlFor("/a"), { accept: "a\r\nb: c" }), { signal });
    await expect(opening).rejects.toThrow(TypeError);
  });
});
