import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, it } from "vitest";
import { createApi } from "../../../src/cli/client/api.ts";
import { writeCredentials } from "../../../src/cli/client/credentials.ts";
import { followEvents, type StreamStep } from "../../../src/cli/client/event-stream.ts";
import { itDeep } from "../../support/deep-run.ts";
import { listenLocally } from "../../support/local-server.ts";
import { until } from "../../support/until.ts";

const dir = mkdtempSync(join(tmpdir(), "inlet-stream-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const env = { XDG_CONFIG_HOME: dir };

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** A gateway that answers each request for the stream with the next of `answers`, and every later one with the last. */
async function startGateway(answers: readonly Answer[]) {
  const positions: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const answer = answers[Math.min(positions.length, answers.length - 1)];
    positions.push(request.headers["last-event-id"] as string | undefined);
    answer?.(response, request);
  });
  const local = await listenLocally(server);
  const ending = new AbortController();
  closing.push(() => {
    ending.abort();
    void local[Symbol.asyncDispose]();
  });
  const baseUrl = `${local.origin}/v1`;
  const waits: string[] = [];
  const steps = followEvents(createApi({ baseUrl, apiKey: "first" }, ending.signal), {
    env,
    appId: "app_1",
    from: "1",
    signal: ending.signal,
    onWaiting: (reason) => void (reason !== undefined && waits.push(reason)),
  });
  return { baseUrl, positions, waits, steps, stop: () => ending.abort() };
}

const HEAD = { "content-type": "text/event-stream; charset=utf-8" };
const sends =
  (text: string): Answer =>
  (response) =>
    void response.writeHead(200, HEAD).write(text);
const ends =
  (text: string): Answer =>
  (response) =>
    void response.writeHead(200, HEAD).end(text);
const fails =
  (status: number, message: string): Answer =>
  (response) =>
    void response.writeHead(status).end(JSON.stringify({ code: "x", message }));

async function take(steps: AsyncIterable<StreamStep>, count: number): Promise<readonly StreamStep[]> {
  const taken: StreamStep[] = [];
  for await (const step of steps) if (taken.push(step) === count) break;
  return taken;
}

it("reopens the stream at the last position after an end, after 503, and after a broken connection", async () => {
  const { steps, positions, waits } = await startGateway([
    ends('id: 2\ndata: {\ndata: "n":1}\n\nevent: position\nid: 3\ndata: {}\n\n'),
    fails(503, "restarting"),
    (response) => response.writeHead(200, HEAD).write("id: 4\ndata: cut off", () => response.destroy()),
    sends("id: 4\ndata: {}\n\n"),
  ]);
  expect(await take(steps, 3)).toEqual([
    { position: "2", event: '{\n"n":1}' },
    { position: "3", event: undefined },
    { position: "4", event: "{}" },
  ]);
  expect(positions).toEqual(["1", "3", "3", "3"]);
  expect(waits.slice(0, 2)).toEqual(["the stream has ended", "restarting"]);
});

it("reopens the stream with the stored API key if the key of an open stream is rejected", async () => {
  const keys: (string | undefined)[] = [];
  const { steps, baseUrl, positions, waits } = await startGateway([
    ends("id: 2\ndata: {}\n\n"),
    fails(401, "rejected"),
    (response, { headers }) => {
      keys.push(headers.authorization);
      sends("id: 3\ndata: {}\n\n")(response, undefined as never);
    },
  ]);
  await writeCredentials(env, { baseUrl, apiKey: "second" });
  expect((await take(steps, 2)).map(({ position }) => position)).toEqual(["2", "3"]);
  expect(positions).toEqual(["1", "2", "2"]);
  expect(keys).toEqual(["Bearer second"]);
  expect(waits[1]).toContain("Run `inlet login`");
});

it.each([400, 401, 403, 404])("ends with the error if the first response has status %i", async (status) => {
  const { steps } = await startGateway([fails(status, "no such thing")]);
  await expect(take(steps, 1)).rejects.toThrow("no such thing");
});

it("reports a response that is not an event stream, such as a proxy's page", async () => {
  const { steps, waits } = await startGateway([
    (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>"),
    sends("id: 2\ndata: {}\n\n"),
  ]);
  await take(steps, 1);
  expect(waits).toEqual([expect.stringContaining("text/event-stream")]);
});

itDeep("reads no faster than its events are consumed", async () => {
  const block = `id: 2\ndata: ${"x".repeat(64 * 1024)}\n\n`;
  let sent = 0;
  const { steps } = await startGateway([
    (response) => {
      response.writeHead(200, HEAD);
      const send = (): void => {
        while (sent < 2_000) {
          sent++;
          if (!response.write(block)) break;
        }
      };
      response.on("drain", send);
      send();
    },
  ]);
  await steps.next();
  let before = -1;
  await until(
    () => {
      const isStill = sent === before;
      before = sent;
      return isStill;
    },
    { everyMs: 200 },
  );
  expect(sent).toBeLessThan(1_000);
  await take(steps, 1_500);
  expect(sent).toBeGreaterThan(1_000);
});

it("ends without an error when the caller stops", async () => {
  const { steps, stop } = await startGateway([sends("id: 2\ndata: {}\n\n")]);
  await steps.next();
  const next = steps.next();
  stop();
  expect(await next).toEqual({ done: true, value: undefined });
});
