import { connect } from "node:net";
import { afterAll, describe, expect, it, vi } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { deliver } from "../support/deliver.ts";
import { type EventStreamReader, readEventStream } from "../support/event-stream.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startTestGateway } from "../support/gateway.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const TYPES = ["a", "b", "c", "d", "e"];

const one = givenGateway();
const { stores } = one;
const other = givenGateway({}, { stores });
const channel = opened(() => {
  const events = TYPES.map((type) => ({ type, typePath: "$.type", idPath: "$.n" }));
  return givenChannel(one, { events });
});
afterAll(() => vi.restoreAllMocks());

/** Time after which the gateway disconnects a reader that does not read. */
const MAX_STALL_MS = 10_000;

/** Stops this process's clock. Returns a function that advances it. */
function holdTime(): (ms: number) => void {
  let nowMs = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  return (ms) => {
    nowMs += ms;
  };
}

let made = 0;
/** Sends `count` deliveries, ten at a time, alternating between both gateways and covering all topics. */
async function send(count: number, more: object = {}): Promise<void> {
  const sendOne = (n: number) => {
    const { origin } = n % 2 === 0 ? one : other;
    return deliver(`${origin}${channel.hookPath}`, { type: TYPES[n % TYPES.length], n, ...more });
  };
  for (let left = count; left > 0; left -= 10) {
    await Promise.all(Array.from({ length: Math.min(left, 10) }, () => sendOne(made++)));
  }
}

const open = (gateway: TestGateway, query: Record<string, string> = {}, after?: string) =>
  fetch(`${gateway.origin}/v1/apps/${channel.appId}/events/stream?${new URLSearchParams(query)}`, {
    headers: {
      authorization: `Bearer ${API_KEY}`,
      ...(after === undefined ? {} : { "last-event-id": after }),
    },
  });

const follow = async (gateway: TestGateway, after?: string): Promise<EventStreamReader> =>
  readEventStream(await open(gateway, {}, after));

const numbersOf = (events: readonly { readonly data: string | undefined }[]): number[] =>
  events.map(({ data = "" }) => JSON.parse(data).data.n);
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
const sorted = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b);

describe("event streams (SSE) of two gateways on the same Redis", () => {
  it("contain the events that either gateway received, and can be continued on one gateway when the other stops", async () => {
    const stopped = await startTestGateway(stores.env);
    const from = made;
    const readers = await Promise.all([follow(one), follow(other), follow(stopped)]);
    await Promise.all(readers.map((reader) => reader.lastId()));
    await send(100);
    for (const reader of readers.slice(0, 2)) {
      expect(sorted(numbersOf(await reader.take(100)))).toEqual(range(from, made));
    }
    const [, , leaving] = readers;
    const seen = numbersOf((await leaving?.take(37)) ?? []);
    const after = await leaving?.lastId();
    // A stopping gateway does not wait for readers: this one keeps reading until its stream has ended.
    const stopping = stopped[Symbol.asyncDispose]();
    while (await leaving?.next());
    await stopping;
    await send(50);
    const resumed = await follow(other, after);
    seen.push(...numbersOf(await resumed.take(made - from - seen.length)));
    expect(sorted(seen)).toEqual(range(from, made));
    await Promise.all([...readers, resumed].map((reader) => reader.close().catch(() => {})));
  });

  it("neither lose nor repeat events when a reader disconnects and reconnects at arbitrary moments", async () => {
    const from = made;
    const first = await follow(one);
    let after = await first.lastId();
    await first.close();
    const sending = send(200);
    const seen: number[] = [];
    for (let turn = 0; seen.length < 200; turn++) {
      const reader = await follow(turn % 2 === 0 ? one : other, after);
      seen.push(...numbersOf(await reader.take(Math.min(1 + ((turn * 17) % 40), 200 - seen.length))));
      after = await reader.lastId();
      await reader.close();
    }
    await sending;
    expect(sorted(seen)).toEqual(range(from, made));
    for (const rest of TYPES.keys()) {
      const ofTopic = seen.filter((n) => n % TYPES.length === rest);
      expect(new Set(ofTopic).size).toBe(ofTopic.length);
    }
  });

  it("are closed for a reader that stops reading, and stay open for all other readers", async () => {
    // The clock stands still, so no reader counts as stalled before the test advances the time.
    const passTime = holdTime();
    const quick = await follow(one);
    await quick.lastId();
    const port = Number(new URL(one.origin).port);
    const socket = connect({ host: "127.0.0.1", port });
    const request = [
      `GET /v1/apps/${channel.appId}/events/stream HTTP/1.1`,
      ...["Host: inlet", `Authorization: Bearer ${API_KEY}`, "", ""],
    ];
    socket.write(request.join("\r\n"));
    await new Promise((resolve) => socket.once("data", resolve));
    socket.pause();
    let cut = false;
    socket.once("close", () => {
      cut = true;
    });
    socket.on("error", () => {});
    const from = made;
    // More than the socket buffers of both ends hold, in deliveries small enough not to wait for the large-body thread.
    await send(240, { filler: "x".repeat(100_000) });
    expect(sorted(numbersOf(await quick.take(240)))).toEqual(range(from, made));
    // The API key has reached its limit of streams. A slot is freed when the stalled stream is cut.
    const quiet = await Promise.all(range(0, 18).map(() => open(one, { type: "quiet" })));
    expect((await open(one, { type: "quiet" })).status).toBe(429);
    passTime(MAX_STALL_MS + 1_000);
    await until(
      async () => {
        const response = await open(one, { type: "quiet" });
        if (response.status === 200) quiet.push(response);
        return response.status === 200;
      },
      { everyMs: 50 },
    );
    socket.resume();
    await until(() => cut);
    await send(1);
    expect(await quick.take(1)).toHaveLength(1);
    await quick.close();
    await Promise.all(quiet.map(({ body }) => body?.cancel()));
  });
});
