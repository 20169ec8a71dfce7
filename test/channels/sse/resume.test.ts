import { createServer, type ServerResponse } from "node:http";
import { createSession } from "better-sse";
import { afterAll, describe, expect, it } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { listenLocally } from "../../support/local-server.ts";
import { at } from "./connection-support.ts";
import {
  ACCEPTED,
  createRun,
  createStreamClient,
  dataOf,
  type Script,
  startRawServer,
  status,
  streamOf,
} from "./support.ts";

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
  const local = await listenLocally(server);
  return {
    ...local,
    lastEventIds,
    url: `${local.origin}/`,
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

describe("an SSE server that no longer knows the last event id", () => {
  const KNOWN = "9";
  /** Responds with `rejection` to every request with an id. */
  const forgetting =
    (rejection: string): Script =>
    async (call) =>
      call.headers["last-event-id"] === undefined && !call.target.includes("since=")
        ? await streamOf("id: 9\ndata: new\n\n")(call)
        : await status(rejection, "Content-Length: 0")(call);
  const resume = (statuses: readonly number[], more: object = {}) => ({
    resume: { expiredOn: { statuses }, ...more },
  });

  it.each([
    ["410 Gone", {}],
    ["400 Bad Request", resume([400])],
    ["404 Not Found", resume([404, 410])],
    ["410 Gone", resume([410], { mode: "query", param: "since" })],
  ])("is asked again without the id after %s, and the gap is reported", async (line, config) => {
    await using server = await startRawServer(forgetting(line));
    const run = createRun({ url: server.url, ...config }, { cursor: at("1") });
    expect(await client.run(run)).toEqual({ kind: "done" });
    expect(dataOf(run)).toEqual(["new"]);
    expect(run.warnings).toEqual(["gap"]);
    expect(run.stored).toBe(at(KNOWN));
    expect(server.calls).toHaveLength(2);
  });

  it("is asked again without the id of `startAt`", async () => {
    await using server = await startRawServer(forgetting("410 Gone"));
    const run = createRun({ url: server.url, startAt: { lastEventId: "1" } });
    expect(await client.run(run)).toEqual({ kind: "done" });
    expect(run.warnings).toEqual(["gap"]);
  });

  it("keeps the position if the stream cannot be opened without it either", async () => {
    await using server = await startRawServer(status("410 Gone", "Content-Length: 0"));
    const run = createRun({ url: server.url }, { cursor: at("1") });
    expect(await client.run(run)).toMatchObject({ kind: "failed", code: "http_410", isRejection: true });
    expect(run.stored).toBe(at("1"));
    expect(run.warnings).toEqual([]);
  });

  it("stops the channel if `onExpired` says so", async () => {
    await using server = await startRawServer(forgetting("410 Gone"));
    const run = createRun({ url: server.url, resume: { onExpired: "stop" } }, { cursor: at("1") });
    expect(await client.run(run)).toMatchObject({ kind: "broken", code: "position_expired" });
    expect(server.calls).toHaveLength(1);
    expect(run.stored).toBe(at("1"));
  });

  it("fails with a hint if its status is not configured", async () => {
    await using server = await startRawServer(forgetting("404 Not Found"));
    const run = createRun({ url: server.url }, { cursor: at("1") });
    expect(await client.run(run)).toMatchObject({
      code: "http_404",
      message: expect.stringContaining("resume.expiredOn.statuses"),
    });
    const first = await client.run(createRun({ url: `${server.url}?since=1` }));
    expect(first).toMatchObject({ message: "The server responded with status 404" });
  });
});
