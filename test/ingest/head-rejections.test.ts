import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { startListener } from "../../src/gateway/listener.ts";
import { createHooks } from "../../src/http/hooks.ts";
import type { CompiledChannel } from "../../src/ingest/compile-channel.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";
import { createTestLimits, createTestReceive, pushChannel } from "./receive-support.ts";

/** Longer than one socket read, so it arrives after the request is routed. */
const LONG = 100_000;
const CHANNEL = pushChannel({ maxBodyBytes: LONG });
/** Its channel would reject the body as too large. */
const PULLED: CompiledChannel = { ...CHANNEL, identity: { ...CHANNEL.identity, kind: "sse" } };

const ending = opened(() => new AsyncDisposableStack());

/** @returns the requests counted by the rate limit, the deliveries, and the port */
async function start(
  hookFastPath: boolean,
  findChannel: () => CompiledChannel | undefined | Promise<CompiledChannel>,
  requestsPerSecond = 1_000,
) {
  const seen = { taken: 0, delivered: [] as number[] };
  const limits = createTestLimits(requestsPerSecond);
  const receiveHook = createTestReceive(
    (_channel, { body }) => {
      seen.delivered.push(body.length);
      const counts = { received: 1, published: 1, duplicates: 0, ignored: 0, quarantined: 0 };
      return { kind: "accepted", outcome: { ...counts, events: [], quarantine: [] } };
    },
    {
      findChannel,
      limits: {
        ...limits,
        checkArrival(...args) {
          seen.taken++;
          return limits.checkArrival(...args);
        },
      },
    },
  );
  const { fetch } = createHooks(receiveHook);
  const { port, serve } = ending.use(
    await startListener({ host: "127.0.0.1", port: 0, hookFastPath }, fetch),
  );
  ending.use(serve({ fetch, receiveHook }));
  return { port, seen };
}

/** Opens a connection and sends the beginning of a body. */
async function post(port: number, announcedBytes: number, sent = "{") {
  const socket = connect({ port, host: "127.0.0.1" });
  ending.defer(() => void socket.destroy());
  const got = { text: "", hasEnded: false };
  socket.setEncoding("latin1").on("data", (piece) => {
    got.text += piece;
  });
  socket.on("end", () => {
    got.hasEnded = true;
  });
  await once(socket, "connect");
  socket.write(
    `POST /hooks/ch_1 HTTP/1.1\r\nHost: inlet.example\r\nContent-Length: ${announcedBytes}\r\n\r\n${sent}`,
  );
  return { socket, got };
}

const ANSWERS = [
  ["a body that is too large", () => CHANNEL, 413],
  ["a body for an unknown channel", () => undefined, 404],
  ["a body for a channel without an address", () => PULLED, 404],
  [
    "a body of a content type that the channel does not accept",
    () => ({ ...CHANNEL, acceptsContentType: () => false }),
    415,
  ],
  [
    "a body whose channel cannot be looked up",
    () => {
      throw new UnavailableError("PostgreSQL is away");
    },
    503,
  ],
] as const;

// Each test has a listener of its own, and mostly waits until a connection is closed.
describe.concurrent.each([
  ["the fast path", true],
  ["node:http", false],
])("a request that is read by %s", (_, isFast) => {
  it.each(
    ANSWERS,
  )("with %s is rejected before the body has arrived, and the connection is closed", async (_, find, status) => {
    const { port, seen } = await start(isFast, find);
    const { got } = await post(port, LONG + 1);
    await until(() => got.hasEnded);
    expect(got.text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(seen).toEqual({ taken: status === 413 || status === 415 ? 1 : 0, delivered: [] });
  });

  it("with a rejected content type keeps its connection if the rest of its body arrives soon", async () => {
    const { port } = await start(isFast, () => ({ ...CHANNEL, acceptsContentType: () => false }));
    const { socket, got } = await post(port, LONG, "a".repeat(LONG / 2));
    await until(() => got.text.startsWith("HTTP/1.1 415 ") && got.text.endsWith("}"));
    socket.write("a".repeat(LONG / 2));
    socket.write("POST /hooks/ch_1 HTTP/1.1\r\nHost: inlet.example\r\nContent-Length: 2\r\n\r\n{}");
    await until(() => got.text.match(/HTTP\/1\.1 415 /g)?.length === 2);
    expect(got.hasEnded).toBe(false);
  });

  it("with a body that is too large is counted once against the sender's rate limit", async () => {
    const { port, seen } = await start(isFast, () => CHANNEL, 1);
    const statuses: string[] = [];
    for (let i = 0; i < 3; i++) {
      const { got } = await post(port, LONG + 1);
      await until(() => got.hasEnded);
      statuses.push(got.text.slice(9, 12));
    }
    expect(statuses).toEqual(["413", "429", "429"]);
    expect(seen.taken).toBe(3);
  });

  it("with a long body is read completely if its head is accepted, and is counted once", async () => {
    const { port, seen } = await start(isFast, () => CHANNEL);
    const { socket, got } = await post(port, LONG, "a".repeat(LONG / 2));
    socket.write("b".repeat(LONG / 2));
    await until(() => got.text.includes("HTTP/1.1 200 OK"));
    expect(seen).toEqual({ taken: 1, delivered: [LONG] });
  });

  it.each([
    ["is found asynchronously", () => Promise.resolve(CHANNEL), 413],
    ["cannot be looked up", () => Promise.reject(new UnavailableError("PostgreSQL is away")), 503],
  ])("with a body that is too large receives only one response if its channel %s", async (_, find, status) => {
    const { port } = await start(isFast, find);
    const { got } = await post(port, LONG + 1);
    await until(() => got.hasEnded);
    expect(got.text.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
  });
});
