import { setImmediate as tick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Credentials } from "../../../src/net/credentials.ts";
import { until } from "../../support/until.ts";
import { STATUSES } from "../pull/statuses.ts";
import { at, messages, NOW_MS, openedConnections } from "./connection-support.ts";
import {
  ACCEPTED,
  createRun,
  createStreamClient,
  dataOf,
  openStreamOf,
  type Script,
  startRawServer,
  status,
  streamOf,
} from "./support.ts";

const { client, runOnce } = openedConnections();
afterEach(() => {
  vi.useRealTimers();
});

describe("an SSE connection", () => {
  it("ends at an event with the configured terminator, and publishes neither this event nor later data", async () => {
    const { run, end } = await runOnce(openStreamOf("id: 1\ndata: a\n\nid: 2\ndata: [DONE]\n\ndata: b\n\n"), {
      terminator: "[DONE]",
    });
    expect(end).toEqual({ kind: "done" });
    expect(dataOf(run)).toEqual(["a"]);
    expect(run.stored).toBe(at("2"));
  });

  it.each([
    { event: "bye" },
    { data: "that's all" },
  ])("ends and is not opened again after an event that matches `stopOn` %j", async (stopOn) => {
    const text = "data: a\n\nevent: bye\ndata: that's all\n\ndata: b\n\n";
    const { run, end } = await runOnce(openStreamOf(text), { stopOn });
    expect(end.kind).toBe("finished");
    expect(dataOf(run)).toEqual(["a", "that's all"]);
  });

  it("ends and is not opened again if the terminator event matches `stopOn`", async () => {
    const config = { terminator: "[DONE]", stopOn: { data: "[DONE]" } };
    const { run, end } = await runOnce(openStreamOf("data: a\n\ndata: [DONE]\n\n"), config);
    expect(end.kind).toBe("finished");
    expect(dataOf(run)).toEqual(["a"]);
  });

  it("is not opened again after a response with status 204", async () => {
    const { end, run } = await runOnce(status("204 No Content"));
    expect(end.kind).toBe("finished");
    expect(run.opens).toBe(0);
  });

  it("fails when it is reset, after its complete events are accepted", async () => {
    const chunked =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    await using server = await startRawServer(({ socket }) => {
      socket.write(`${chunked}1d\r\nid: 1\ndata: a\n\nid: 2\ndata: b\n\r\n`);
    });
    const run = createRun({ url: server.url });
    const running = client.run(run);
    await until(() => run.taken.length === 1);
    server.calls[0]?.socket.resetAndDestroy();
    expect(await running).toMatchObject({ kind: "failed", code: "reset" });
    expect(dataOf(run)).toEqual(["a"]);
  });

  it("fails when its transfer encoding is broken, after its complete events are accepted and the cursor is stored", async () => {
    const whole = gzipSync("id: 1\ndata: a\n\nevent: other\nid: 2\ndata: b\n\n");
    const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n";
    const checksumAndLength = 8;
    await using server = await startRawServer(({ socket }) => {
      socket.write(`${head}Connection: close\r\n\r\n`);
      socket.write(whole.subarray(0, -checksumAndLength));
    });
    const run = createRun({ url: server.url, eventNames: ["message"] });
    const running = client.run(run);
    await until(() => run.taken.length === 1);
    server.calls[0]?.socket.end("not these eight and more");
    expect(await running).toMatchObject({ kind: "failed", code: "protocol" });
    expect(dataOf(run)).toEqual(["a"]);
    expect(run.stored).toBe(at("2"));
  });

  it("fails when it receives no bytes, not even a comment, until the idle timeout", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let bytes = 0;
    await using counting = createStreamClient(
      () => NOW_MS,
      (more) => (bytes += more),
    );
    const first = "data: a\n\n";
    await using server = await startRawServer(openStreamOf(first));
    const run = createRun({ url: server.url, idleTimeoutMs: 500 });
    let isOver = false;
    const running = counting.run(run).finally(() => {
      isOver = true;
    });
    while (run.taken.length === 0) await tick();
    vi.advanceTimersByTime(400);
    server.calls[0]?.socket.write(":\n");
    while (bytes < first.length + 2) await tick();
    vi.advanceTimersByTime(499);
    await tick();
    expect(isOver).toBe(false);
    vi.advanceTimersByTime(1);
    expect(await running).toMatchObject({ kind: "failed", code: "idle_timeout" });
  });

  it("is closed at its maximum age, and can be opened again at once", async () => {
    const { end } = await runOnce(openStreamOf("data: a\n\n"), { maxConnectionAgeMs: 1000 });
    expect(end).toEqual({ kind: "done", notBeforeMs: NOW_MS });
  });

  it("is closed when its run is aborted, after the writes in flight have completed", async () => {
    await using server = await startRawServer(openStreamOf(messages("1", "2")));
    const written: string[] = [];
    const run = createRun(
      { url: server.url },
      {
        async ingest({ body }) {
          await tick();
          written.push(body.toString());
          return ACCEPTED;
        },
      },
    );
    const running = client.run(run);
    await until(() => run.taken.length === 2);
    run.controller.abort();
    expect(await running).toEqual({ kind: "done" });
    expect(written).toEqual(["1", "2"]);
  });

  it("is closed when its run is aborted, even after a garbage collection", async () => {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    await using server = await startRawServer(openStreamOf(messages("1")));
    const run = createRun({ url: server.url });
    const running = client.run(run);
    await until(() => run.taken.length === 1);
    for (let i = 0; i < 3; i++) {
      await tick();
      collect();
    }
    run.controller.abort();
    expect(await running).toEqual({ kind: "done" });
    await until(() => server.calls[0]?.socket.destroyed === true);
  });
});

describe("opening an SSE connection", () => {
  it.each(
    STATUSES,
  )("fails if the response has status %d (counted as rejection: %s)", async (code, isRejection) => {
    const { end, run } = await runOnce(status(`${code} Status`, "Content-Length: 0"));
    expect(end).toMatchObject({ kind: "failed", code: `http_${code}` });
    expect(end).not.toHaveProperty("notBeforeMs");
    expect("isRejection" in end).toBe(isRejection);
    expect(run.opens).toBe(0);
  });

  it.each([
    "429 Too Many Requests",
    "503 Service Unavailable",
  ])("fails with status %s, and the next attempt waits for the time in Retry-After", async (line) => {
    const { end } = await runOnce(status(line, "Retry-After: 7", "Content-Length: 0"));
    expect(end).toMatchObject({
      kind: "failed",
      code: `http_${line.slice(0, 3)}`,
      notBeforeMs: NOW_MS + 7000,
    });
  });

  it("fails if the content type of the response is not text/event-stream", async () => {
    for (const contentType of ["text/html", "text/event-streams", "application/json"]) {
      const { end } = await runOnce(status("200 OK", `Content-Type: ${contentType}`, "Content-Length: 0"));
      expect(end).toMatchObject({ kind: "failed", code: "content_type", isRejection: true });
    }
    const { end } = await runOnce(
      status("200 OK", "Content-Type: Text/Event-Stream ; charset=latin1", "Content-Length: 0"),
    );
    expect(end).toEqual({ kind: "done" });
  });

  it("fails with the status and the start of a text response, without the credentials of the request", async () => {
    const respond =
      (line: string, type: string, body: string): Script =>
      ({ socket }) => {
        socket.end(`HTTP/1.1 ${line}\r\nContent-Type: ${type}\r\nConnection: close\r\n\r\n${body}`);
      };
    const secret = "s3cret-of-the-connection";
    const request = { method: "GET", url: "", headers: { "x-key": secret } };
    const credentials: Credentials = {
      authorize: async ({ url }) => ({
        request: { ...request, url },
        secretHeaders: ["x-key"],
        secretQuery: [],
        generation: undefined,
      }),
      renew: async () => false,
    };
    const messageOf = async (script: Script): Promise<string> => {
      const { end } = await runOnce(script, {}, { credentials });
      return "message" in end ? end.message : end.kind;
    };
    expect(await messageOf(respond("403 No", "text/plain", `no\r\n access\tfor ${secret}`))).toBe(
      "The server responded with status 403: no access for ***",
    );
    expect(
      await messageOf(respond("500 No", "application/problem+json; charset=utf-8", '{"title":"x"}')),
    ).toBe('The server responded with status 500: {"title":"x"}');
    expect(await messageOf(respond("200 OK", "text/html", "<p>Sign in</p>"))).toBe(
      'The server responded with "text/html" instead of text/event-stream: <p>Sign in</p>',
    );
    expect(await messageOf(respond("500 No", "text/plain", "ä".repeat(5_000)))).toBe(
      `The server responded with status 500: ${"ä".repeat(200)}`,
    );
    expect(await messageOf(respond("500 No", "image/png", "binary"))).toBe(
      "The server responded with status 500",
    );
  });

  it("fails soon after an error status, even if the text of the response never ends", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await using server = await startRawServer(({ socket }) => {
      socket.write("HTTP/1.1 500 No\r\nContent-Type: text/plain\r\n\r\nstart");
    });
    const running = client.run(createRun({ url: server.url }));
    let isOver = false;
    void running.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      vi.advanceTimersByTime(100);
      await tick();
    }
    expect(await running).toMatchObject({ message: "The server responded with status 500: start" });
  });

  it("fails if the server refuses the connection", async () => {
    const gone = await startRawServer();
    await gone[Symbol.asyncDispose]();
    expect(await client.run(createRun({ url: gone.url }))).toMatchObject({
      kind: "failed",
      code: "refused",
    });
  });

  it("fails if no response arrives before the connect timeout", async () => {
    const { end } = await runOnce(() => {}, { connectTimeoutMs: 100 });
    expect(end).toMatchObject({ kind: "failed", code: "timeout" });
  });

  it.each([301, 302, 307, 308])("follows redirects with status %d up to the allowed number", async (code) => {
    const redirect: Script = ({ socket }) => {
      socket.end(
        `HTTP/1.1 ${code} Moved\r\nLocation: /next\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
      );
    };
    await using server = await startRawServer(redirect, streamOf("data: 1\n\n"));
    const run = createRun({ url: server.url }, { cursor: at("5") });
    expect(await client.run(run)).toEqual({ kind: "done" });
    expect(dataOf(run)).toEqual(["1"]);
    expect(server.calls[1]).toMatchObject({ target: "/next", headers: { "last-event-id": "5" } });
    await using endless = await startRawServer(redirect);
    const end = await client.run(createRun({ url: endless.url, redirects: 2 }));
    expect(end).toMatchObject({ kind: "failed", code: "redirects" });
    expect(endless.calls).toHaveLength(3);
  });

  it("fails if the address is private and must not be called", async () => {
    const end = await client.run(createRun({ url: "http://10.0.0.1/stream" }));
    expect(end).toMatchObject({
      kind: "failed",
      code: "blocked",
      isRejection: true,
      message: expect.stringContaining("(`url`)"),
    });
  });
});

describe("the reconnect wait from the server's `retry` field", () => {
  it("applies to every reconnect until the server sends another value, and is at most `maxMs`", async () => {
    const own = createStreamClient(() => NOW_MS);
    await using _ = own;
    await using server = await startRawServer(
      streamOf("retry: 3000\n\n"),
      status("500 Oops", "Content-Length: 0"),
      status("503 Busy", "Retry-After: 1", "Content-Length: 0"),
      streamOf("retry: 5s\nretry: 99999999999999\n\n"),
    );
    const runAgain = () =>
      own.run(createRun({ url: server.url, reconnect: { maxMs: 20_000 } }, { number: 1_000 }));
    expect(await runAgain()).toEqual({ kind: "done", notBeforeMs: NOW_MS + 3000 });
    expect(await runAgain()).toMatchObject({ code: "http_500", notBeforeMs: NOW_MS + 3000 });
    expect(await runAgain()).toMatchObject({ code: "http_503", notBeforeMs: NOW_MS + 1000 });
    expect(await runAgain()).toEqual({ kind: "done", notBeforeMs: NOW_MS + 20_000 });
  });

  it("is at least 100 ms, unless the channel's initial wait is shorter", async () => {
    const own = createStreamClient(() => NOW_MS);
    await using _ = own;
    await using server = await startRawServer(streamOf("retry: 0\n\n"), streamOf("retry: 0\n\n"));
    const runAgain = (reconnect: object) =>
      own.run(createRun({ url: server.url, reconnect }, { number: 1_001 }));
    expect(await runAgain({})).toEqual({ kind: "done", notBeforeMs: NOW_MS + 100 });
    expect(await runAgain({ initialMs: 10 })).toEqual({ kind: "done", notBeforeMs: NOW_MS + 10 });
  });
});
