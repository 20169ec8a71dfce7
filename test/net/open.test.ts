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
  it("closes its connection when it is canceled, also during a pending read", async () => {
    using endless = await startEndless();
    const { body } = await outbound.open(get(endless.url), { signal: new AbortController().signal });
    expect(Buffer.from((await body.read()) ?? []).toString()).toBe("first");
    const reading = body.read();
    await body.cancel();
    expect(await reading).toBeUndefined();
    expect(await body.read()).toBeUndefined();
    await endless.closed;
  });

  it("closes its connection when the signal aborts, and fails with its reason", async () => {
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

  it("is decoded, and has the URL after redirects", async () => {
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

  it("can be canceled after decoding has failed, as after any other failure", async () => {
    await server
      .forGet("/broken")
      .thenReply(200, Buffer.from("this is no gzip"), { "content-encoding": "gzip" });
    const { signal } = new AbortController();
    const { body } = await outbound.open(get(server.urlFor("/broken")), { signal });
    await expect(body.read()).rejects.toMatchObject({ name: "OutboundError", code: "protocol" });
    expect(await body.cancel()).toBeUndefined();
  });

  it("is not requested if a header of the request is invalid", async () => {
    const { signal } = new AbortController();
    const opening = outbound.open(get(server.urlFor("/a"), { accept: "a\r\nb: c" }), { signal });
    await expect(opening).rejects.toThrow(TypeError);
  });
});
