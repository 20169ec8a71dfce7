import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo, LookupFunction, Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOutbound } from "../../src/net/create-outbound.ts";
import type { Outbound } from "../../src/net/outbound.ts";
import { CEILING_MS } from "../support/until.ts";

/** Acts as a server in the private network behind the gateway. */
let inner: Server;
let port: number;
let connections = 0;
beforeAll(async () => {
  inner = createServer((request, response) => {
    if (request.url === "/elsewhere") response.writeHead(302, { location: `http://127.0.0.2:${port}/` });
    response.end("inner");
  }).on("connection", () => connections++);
  await new Promise<void>((resolve) => inner.listen(0, resolve));
  ({ port } = inner.address() as AddressInfo);
});
afterAll(() => {
  inner.closeAllConnections();
  inner.close();
});
beforeEach(() => {
  connections = 0;
});

const { signal } = new AbortController();
const get = (outbound: Outbound, url: string) =>
  outbound.request({ method: "GET", url, headers: {} }, { signal, connectTimeoutMs: CEILING_MS });

/** Resolves any name. Each lookup returns the next list of addresses. The last list repeats. */
function resolveTo(...lookups: readonly (readonly string[])[]): LookupFunction {
  let n = 0;
  return (_, __, callback) => {
    const addresses = lookups[Math.min(n++, lookups.length - 1)] ?? [];
    const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    setImmediate(() => callback(null, found));
  };
}

/** A server thread. It resets each connection when the shared number becomes 1, and then sets the number to 2. */
const RESETTER = `
  const { parentPort, workerData } = require("node:worker_threads");
  const server = require("node:net").createServer((socket) => {
    Atomics.wait(workerData, 0, 0, ${CEILING_MS});
    socket.on("close", () => {
      Atomics.store(workerData, 0, 2);
      Atomics.notify(workerData, 0);
    });
    socket.resetAndDestroy();
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
`;

describe("an outbound call", () => {
  it.each([
    "http://127.0.0.1",
    "http://127.1",
    "http://2130706433",
    "http://0x7f000001",
    "http://0x7f.0.0.1",
    "http://017700000001",
    "http://0177.0.0.01",
    "http://127.0.0.1.",
    "http://127%2e0%2e0%2e1",
    "http://①②⑦.⓪.⓪.①",
    "http://0",
    "http://0.0.0.0",
    "http://[::1]",
    "http://[0:0:0:0:0:0:0:1]",
    "http://[::]",
    "http://[::ffff:127.0.0.1]",
    "http://[::ffff:7f00:1]",
    "http://[::127.0.0.1]",
    "http://[::7f00:1]",
    "http://[64:ff9b::127.0.0.1]",
    "http://[2002:7f00:1::]",
    "http://[fe80::1]",
    "http://localhost",
    "http://LOCALHOST",
    "http://169.254.169.254",
    "https://127.0.0.1",
    "https://[::1]",
  ])("is blocked if its URL leads to a private address: %s", async (origin) => {
    await using outbound = createOutbound({ allowNetworks: [] });
    await expect(get(outbound, `${origin}:${port}/`)).rejects.toMatchObject({
      name: "OutboundError",
      code: "blocked",
    });
    expect(connections).toBe(0);
  });

  it.each([
    "ftp://example.com/",
    "file:///etc/passwd",
    "unix:/run/x.sock",
    "http://user:password@example.com/",
    "http://user@example.com/",
    "http://[fe80::1%25eth0]/",
    "http://exa mple.com/",
    "//example.com/",
    "",
  ])("rejects the URL %j", async (url) => {
    await using outbound = createOutbound({ allowNetworks: ["0.0.0.0/0", "::/0"] });
    await expect(get(outbound, url)).rejects.toMatchObject({ code: "blocked" });
  });

  it.each([
    ["a private address", ["10.0.0.1"]],
    ["loopback", ["127.0.0.1"]],
    ["a public address and a private one", ["93.184.216.34", "127.0.0.1"]],
    ["a private address and a public one", ["::1", "93.184.216.34"]],
    ["loopback inside IPv6", ["::ffff:127.0.0.1"]],
    ["loopback with a zone", ["fe80::1%lo"]],
  ])("is blocked if its host name resolves to %s", async (_, addresses) => {
    await using outbound = createOutbound({ allowNetworks: [], lookup: resolveTo(addresses) });
    for (const host of ["inner.example", "inner.example.", "INNER.example"]) {
      await expect(get(outbound, `http://${host}:${port}/`)).rejects.toMatchObject({ code: "blocked" });
      await expect(get(outbound, `https://${host}:${port}/`)).rejects.toMatchObject({ code: "blocked" });
    }
    expect(connections).toBe(0);
  });

  it("checks the resolved address again for each connection, which prevents DNS rebinding", async () => {
    const lookup = resolveTo(["127.0.0.1"], ["127.0.0.2"]);
    await using outbound = createOutbound({ allowNetworks: ["127.0.0.1/32"], lookup });
    const url = `http://rebinding.example:${port}/`;
    await outbound.request({ method: "GET", url, headers: { connection: "close" } }, { signal });
    expect(connections).toBe(1);
    await expect(get(outbound, url)).rejects.toMatchObject({ code: "blocked" });
    expect(connections).toBe(1);
  });

  it("fails with an error that reveals neither the blocked host nor its address", async () => {
    await using outbound = createOutbound({ allowNetworks: [], lookup: resolveTo(["10.11.12.13"]) });
    const failure = await get(outbound, "http://inner.example/").catch((error: Error) => error.message);
    expect(failure).not.toMatch(/10\.11|inner\.example/);
  });

  it("is blocked if a redirect leads to a forbidden address", async () => {
    await using outbound = createOutbound({ allowNetworks: ["127.0.0.1/32"] });
    const url = `http://127.0.0.1:${port}/elsewhere`;
    await expect(get(outbound, url)).rejects.toMatchObject({ code: "blocked" });
  });

  it("fails with the code reset instead of blocked if the server closes the connection immediately", async () => {
    await using outbound = createOutbound({ allowNetworks: ["127.0.0.0/8"] });
    const turn = new Int32Array(new SharedArrayBuffer(4));
    const resetter = new Worker(RESETTER, { eval: true, workerData: turn });
    const [resetterPort] = await once(resetter, "message");
    // Blocks the client right after it connects, before it checks the address.
    const holdUntilReset = (message: unknown): void => {
      const { socket } = message as { readonly socket: Socket };
      socket.once("connect", () => {
        Atomics.store(turn, 0, 1);
        Atomics.notify(turn, 0);
        Atomics.wait(turn, 0, 1, CEILING_MS);
      });
    };
    subscribe("net.client.socket", holdUntilReset);
    try {
      const failure = get(outbound, `http://127.0.0.1:${resetterPort}/`);
      await expect(failure).rejects.toMatchObject({ name: "OutboundError", code: "reset" });
      expect(turn[0]).toBe(2);
    } finally {
      unsubscribe("net.client.socket", holdUntilReset);
      await resetter.terminate();
    }
  });

  it("can reach the private networks that the operator allows", async () => {
    await using outbound = createOutbound({ allowNetworks: ["127.0.0.0/8", "::1/128"] });
    for (const host of ["127.0.0.1", "2130706433", "localhost", "[::1]", "[::ffff:127.0.0.1]"]) {
      expect(String((await get(outbound, `http://${host}:${port}/`)).body)).toBe("inner");
    }
  });

  it("fails with the code unresolved if its host name does not resolve", async () => {
    await using outbound = createOutbound({ allowNetworks: [], lookup: resolveTo([]) });
    await expect(get(outbound, "http://nowhere.example/")).rejects.toMatchObject({ code: "unresolved" });
  });
});
