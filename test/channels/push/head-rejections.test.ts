import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import { createBodyBudget } from "../../../src/channels/body-budget.ts";
import { createHooks } from "../../../src/channels/push/hooks.ts";
import { createHookLimits } from "../../../src/channels/push/rate-limit.ts";
import { createReceiveDelivery } from "../../../src/channels/push/receive-delivery.ts";
import type { ChannelHandle } from "../../../src/event/ingest.ts";
import { startListener } from "../../../src/gateway/listener.ts";
import { createClientAddressOf } from "../../../src/lib/addresses/client-address.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { createLog } from "../../../src/log.ts";
import { createMetrics } from "../../../src/metrics.ts";
import { until } from "../../support/until.ts";
import { pushChannel } from "./push-support.ts";

/** Longer than one socket read, so it arrives after the request is routed. */
const LONG = 100_000;
const CHANNEL = pushChannel(LONG);
/** Its channel would reject the body as too large. */
const PULLED: ChannelHandle = { ...CHANNEL, identity: { ...CHANNEL.identity, kind: "sse" } };

let ending = new AsyncDisposableStack();
afterEach(async () => {
  await ending.disposeAsync();
  ending = new AsyncDisposableStack();
});

/** @returns the requests counted by the rate limit, the deliveries, and the port */
async function start(
  findChannel: () => ChannelHandle | undefined | Promise<ChannelHandle>,
  requestsPerSecond = 1_000,
) {
  const seen = { taken: 0, delivered: [] as number[] };
  const limits = createHookLimits({
    clientAddressOf: createClientAddressOf([]),
    requestsPerSecond,
    requestsPerSecondOf: () => undefined,
    isOverLimit: () => false,
    nowMs: () => 0,
  });
  const receive = createReceiveDelivery({
    ingest: async (_channel, { body }) => {
      seen.delivered.push(body.length);
      const counts = { received: 1, published: 1, duplicates: 0, quarantined: 0 };
      return { kind: "accepted", outcome: { ...counts, events: [], quarantine: [] } };
    },
    bodies: createBodyBudget(),
    clock: Date.now,
  });
  const hooks = createHooks({
    findChannel,
    runtimes: new Map([["webhook", { receive, async [Symbol.asyncDispose]() {} }]]),
    limits: {
      ...limits,
      checkArrival(...args) {
        seen.taken++;
        return limits.checkArrival(...args);
      },
    },
    onRejected: () => {},
    metrics: createMetrics(),
    clock: Date.now,
    log: createLog({ level: "silent" }),
  });
  const fetch = () => new Response(null, { status: 418 });
  const { port, serve } = ending.use(await startListener({ host: "127.0.0.1", port: 0 }, fetch));
  ending.use(serve({ fetch, answerDirectly: hooks }));
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

it.each(
  ANSWERS,
)("rejects %s before its body has arrived, and closes the connection", async (_, find, status) => {
  const { port, seen } = await start(find);
  const { got } = await post(port, LONG + 1);
  await until(() => got.hasEnded);
  expect(got.text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(got.text).toContain("\r\nConnection: close\r\n");
  expect(seen).toEqual({ taken: status === 413 || status === 415 ? 1 : 0, delivered: [] });
});

it("counts each oversized body once against the sender's rate limit", async () => {
  const { port, seen } = await start(() => CHANNEL, 1);
  const statuses: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { got } = await post(port, LONG + 1);
    await until(() => got.hasEnded);
    statuses.push(got.text.slice(9, 12));
  }
  expect(statuses).toEqual(["413", "429", "429"]);
  expect(seen.taken).toBe(3);
});

it("reads a long body completely if its head is accepted, and counts it once", async () => {
  const { port, seen } = await start(() => CHANNEL);
  const { socket, got } = await post(port, LONG, "a".repeat(LONG / 2));
  socket.write("b".repeat(LONG / 2));
  await until(() => got.text.includes("HTTP/1.1 200 OK"));
  expect(seen).toEqual({ taken: 1, delivered: [LONG] });
});

it.each([
  ["is found asynchronously", () => Promise.resolve(CHANNEL), 413],
  ["cannot be looked up", () => Promise.reject(new UnavailableError("PostgreSQL is away")), 503],
])("responds once to a body that is too large for a channel that %s", async (_, find, status) => {
  const { port } = await start(find);
  const { got } = await post(port, LONG + 1);
  await until(() => got.hasEnded);
  expect(got.text.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
});
