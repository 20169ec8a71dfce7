import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { openedOutbound } from "./support.ts";

const { outbound, server } = openedOutbound();

/** A server whose responses start and never end. */
async function startEndless() {
  const endless = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfirst"));
  });
  await new Promise<void>((resolve) => endless.listen(0, "127.0.0.1", resolve));
  const closed = new Promise<void>((resolve) => {
    endless.on("connection", (socket) => socket.on("close", () => resolve()));
  });
  return {
    url: `http://127.0.0.1:${(endless.address() as AddressInfo).port}/`,
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

  it("is never requested if a request header is invalid", async () => {
    const { signal } = new AbortController();
    const opening = outbound.open(get(server.urlFor("/a"), { accept: "a\r\nb: c" }), { signal });
    await expect(opening).rejects.toThrow(TypeError);
  });
});
