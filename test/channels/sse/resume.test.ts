import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createSession } from "better-sse";
import { afterAll, expect, it } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { ACCEPTED, createRun, createStreamClient } from "./support.ts";

const client = createStreamClient();
afterAll(() => client[Symbol.asyncDispose]());

interface Entry {
  readonly id: string | undefined;
  readonly data: number;
}

/** Starts a better-sse server that sends its history after the last event id. It cuts the connection when `cutsAt` returns true. */
async function startHistory(history: readonly Entry[], cutsAt: (sent: number) => boolean) {
  const lastEventIds: string[] = [];
  const server = createServer(async (request, response) => {
    const session = await createSession(request, response, { retry: null, keepAlive: null });
    // Ids arrive as UTF-8. Node reads each byte of a header as one character.
    const lastId = Buffer.from(session.lastId, "latin1").toString();
    lastEventIds.push(lastId);
    const from = lastId === "" ? 0 : history.findIndex(({ id }) => id === lastId) + 1;
    let sent = 0;
    for (const { data, id } of history.slice(from)) {
      if (cutsAt(++sent)) return cutAfterFlush(response);
      // better-sse generates missing ids, so this frame is written directly.
      if (id === undefined) response.write(`event: tick\ndata: ${data}\n\n`);
      else session.push(data, "tick", id);
    }
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    lastEventIds,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Cuts the connection in the middle of a frame. */
function cutAfterFlush(response: ServerResponse): void {
  response.write("event: tick\ndata: 999", () => response.socket?.resetAndDestroy());
}

/** Collects published events by their dedupe id, with the cursor of each. */
async function receiveAll(url: string, total: number, failsAt: (call: number) => boolean) {
  const published = new Map<string, number>();
  const order: number[] = [];
  let stored: string | undefined;
  let calls = 0;
  let connections = 0;
  for (; order.length < total && connections < 1_000; connections++) {
    let failed = false;
    const run = createRun(
      { url },
      {
        ...(stored !== undefined && { cursor: stored }),
        async ingest({ body, deliveryId = "" }, { cursor }) {
          failed ||= failsAt(++calls);
          // The engine also rejects all writes after a failed one.
          if (failed) throw new UnavailableError("no Redis");
          const data = Number(body.toString());
          if (!published.has(deliveryId)) order.push(data);
          expect(published.get(deliveryId) ?? data).toBe(data);
          published.set(deliveryId, data);
          stored = cursor ?? stored;
          return ACCEPTED;
        },
      },
    );
    await client.run(run).catch((error: unknown) => expect(error).toBeInstanceOf(UnavailableError));
    expect(run.warnings).toEqual([]);
  }
  return { order, connections };
}

it("an SSE channel loses and duplicates no event when the server or a failing write interrupts the stream again and again", async () => {
  const history = Array.from({ length: 2_000 }, (_, n) => ({ id: String(n), data: n }));
  await using server = await startHistory(history, (sent) => sent > 97);
  const { order, connections } = await receiveAll(server.url, history.length, (call) => call % 61 === 0);
  expect(order).toEqual(history.map(({ data }) => data));
  expect(connections).toBeGreaterThan(30);
  expect(server.lastEventIds.slice(1)).not.toContain("");
});

it("an SSE channel loses and duplicates no event when its stream is interrupted and only some events have ids", async () => {
  const history = Array.from({ length: 1_000 }, (_, n) => ({
    id: n % 5 === 0 ? `ü${n}` : undefined,
    data: n,
  }));
  await using server = await startHistory(history, (sent) => sent > 43);
  const { order, connections } = await receiveAll(server.url, history.length, (call) => call % 31 === 0);
  expect(order).toEqual(history.map(({ data }) => data));
  expect(connections).toBeGreaterThan(20);
});
