import { type AddressInfo, createServer, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { openedOutbound } from "./support.ts";

const { outbound, server } = openedOutbound();

describe("outbound fetch()", () => {
  it("sends form bodies, follows redirects and returns a response like the standard fetch()", async () => {
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

  it("returns each chunk of a response body as soon as the chunk arrives", async () => {
    const source = new PassThrough();
    await server.forGet("/a").thenStream(200, source);
    const reader = (await outbound.fetch()(server.urlFor("/a"))).body?.getReader();
    for (const piece of ["first", "second"]) {
      source.write(piece);
      expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(piece);
    }
    await reader?.cancel();
    source.destroy();
  });

  it("stops reading from the socket while the caller does not read the response", async () => {
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
    await new Promise<void>((resolve) => flood.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(flood.address() as AddressInfo).port}`;
    try {
      const unread = await outbound.fetch()(`${origin}/unread`);
      // Two later responses arrive completely, while the first one makes no progress.
      for (const path of ["/read", "/read-too"]) {
        let bytes = 0;
        for await (const chunk of (await outbound.fetch()(origin + path)).body ?? []) bytes += chunk.length;
        expect(bytes).toBe(PIECES * piece.length);
      }
      expect(sockets.get("/unread")?.writableLength).toBeGreaterThan(0);
      await unread.body?.cancel();
    } finally {
      for (const socket of sockets.values()) socket.destroy();
      flood.close();
    }
  });
});
