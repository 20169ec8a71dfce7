import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { beforeAll, expect, it, vi } from "vitest";
import type { GivenChannel } from "../support/channels.ts";
import { itDeep } from "../support/deep-run.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { moveMonotonicClock } from "../support/moved-clock.ts";
import { until } from "../support/until.ts";
import { openStream, sendRequest } from "./clients.ts";
import { givenTicks, nameOf } from "./ticks.ts";

const gateway = givenGateway();

let channel: GivenChannel;
let name: string;
beforeAll(async () => {
  channel = await givenTicks(gateway);
  name = nameOf(channel);
});

async function poll(params: object) {
  const { message } = await sendRequest(gateway, { method: "events/poll", params });
  return message.result;
}

const createKey = (permissions: readonly string[]) =>
  gateway.api<{ id: string; key: string }>("POST", "/iam/api-keys", { name: "test", permissions });

async function openActive(params: object, token = API_KEY) {
  const stream = await openStream(gateway, params, { token });
  await until(() => stream.ofKind("active").length === 1);
  return stream;
}

it("sends the events after a cursor, then new ones", async () => {
  const own = await givenTicks(gateway);
  const { cursor } = await poll({ name: nameOf(own) });
  for (const n of [0, 1]) await own.send({ type: "tick", n });
  const stream = await openActive({ name: nameOf(own), cursor });
  await until(() => stream.numbers().length === 2);
  for (const n of [2, 3]) await own.send({ type: "tick", n });
  await until(() => stream.numbers().length === 4);
  stream.close();
  expect(stream.numbers()).toEqual([0, 1, 2, 3]);
  const last = stream.ofKind("event").at(-1)?.params.cursor;
  expect((await poll({ name: nameOf(own), cursor: last })).events).toEqual([]);
});

it("starts with new events without a cursor", async () => {
  const own = await givenTicks(gateway);
  await own.send({ type: "tick", n: 0 });
  const stream = await openActive({ name: nameOf(own) });
  await own.send({ type: "tick", n: 1 });
  await until(() => stream.numbers().length === 1);
  stream.close();
  expect(stream.numbers()).toEqual([1]);
});

it("sends a heartbeat with the current cursor after 15 seconds without an event, and none before", async () => {
  const own = await givenTicks(gateway);
  const params = { name: nameOf(own), arguments: { filter: false } };
  // The clock only moves when the test moves it, so a busy machine reaches no heartbeat too early.
  let nowMs = performance.now();
  using _ = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const stream = await openActive(params);
  const other = await openActive({ name: nameOf(own) });
  nowMs += 14_000;
  await own.send({ type: "tick", n: 0 });
  await until(() => other.numbers().length === 1);
  other.close();
  expect(stream.ofKind("heartbeat")).toEqual([]);
  for (const count of [1, 2]) {
    nowMs += 15_000;
    await until(() => stream.ofKind("heartbeat").length === count);
  }
  stream.close();
  // The event that the filter omits is before the cursor, so its removal is no gap.
  await gateway.stores.client.xtrim(own.topicOf("tick"), "MAXLEN", 0);
  const { cursor } = stream.ofKind("heartbeat").at(-1)?.params ?? {};
  expect(await poll({ ...params, cursor })).toMatchObject({ events: [], truncated: false });
});

it("ends after its key is revoked", async () => {
  const { id, key } = await createKey(["apps.read"]);
  const stream = await openActive({ name }, key);
  await gateway.api("DELETE", `/iam/api-keys/${id}`);
  await until(() => !stream.isOpen());
  expect(stream.ofKind("terminated")).toMatchObject([{ params: { error: { code: -32012 } } }]);
});

/** Opens this many streams. A caller can have 20. */
async function openAll(key: string, count = 20) {
  const streams = await Promise.all(Array.from({ length: count }, () => openActive({ name }, key)));
  return { close: () => streams.map((stream) => stream.close()) };
}

const isOpenable = async (key: string): Promise<boolean> => {
  const { message } = await sendRequest(gateway, { method: "events/stream", params: { name }, token: key });
  return message.error === undefined;
};

it("rejects more than 20 streams of a caller, and frees the place of each closed one", async () => {
  const { key } = await createKey(["apps.read"]);
  const all = await openAll(key);
  const { message } = await sendRequest(gateway, { method: "events/stream", params: { name }, token: key });
  expect(message.error).toMatchObject({ code: -32013, data: { limit: "streams", max: 20 } });
  expect(await isOpenable(API_KEY)).toBe(true);
  all.close();
  await until(() => isOpenable(key));
});

/** Opens a stream whose client reads the head of the response and then nothing more. */
async function openStalled(key: string, params: object): Promise<Socket> {
  const socket = connect(Number(new URL(gateway.origin).port), "127.0.0.1");
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "events/stream", params });
  const head = [
    "POST /mcp HTTP/1.1",
    "host: 127.0.0.1",
    `authorization: Bearer ${key}`,
    "content-type: application/json",
    "accept: application/json, text/event-stream",
    "mcp-protocol-version: 2025-11-25",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  await once(socket, "data");
  return socket.pause();
}

/** More data than the buffers of a connection hold, in events of this size. */
const STALLING = { events: 8, characters: 3_000_000 };

itDeep("ends a stream whose client accepts no data for ten seconds, and frees its place", async () => {
  const { key } = await createKey(["apps.read"]);
  const own = await givenTicks(gateway);
  using clock = moveMonotonicClock();
  const socket = await openStalled(key, { name: nameOf(own) });
  const others = await openAll(key, 19);
  expect(await isOpenable(key)).toBe(false);
  for (let n = 0; n < STALLING.events; n++)
    await own.send({ type: "tick", n, text: "x".repeat(STALLING.characters) });
  await until(() => {
    clock.ahead(1_000);
    return isOpenable(key);
  });
  others.close();
  socket.destroy();
});
