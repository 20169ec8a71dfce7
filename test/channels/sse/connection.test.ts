import { setImmediate as tick } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { until } from "../../support/until.ts";
import { at, messages, NOW_MS, openedConnections } from "./connection-support.ts";
import { createRun, dataOf, idsOf, openStreamOf, startRawServer, streamOf } from "./support.ts";

const { client, runOnce } = openedConnections();

describe("an event stream", () => {
  it("delivers each event in order, together with the cursor that follows the event", async () => {
    const { run, end } = await runOnce(
      streamOf(
        'id: 1\nevent: made\ndata: {"a":1}\n\nid: 2\ndata: {"a":2}\n\n',
        "data: {}\n\nid: 3\ndata: cut off",
      ),
    );
    expect(end).toEqual({ kind: "done" });
    expect(run.taken).toEqual([
      { event: "made", data: '{"a":1}', id: "1", cursor: at("1") },
      { event: "message", data: '{"a":2}', id: "2", cursor: at("2") },
      { event: "message", data: "{}", id: "2/2", cursor: at("2", 2) },
    ]);
    expect(run.deliveries[0]).toEqual({
      headers: { "content-type": "application/json", event: "made", "last-event-id": "1" },
      body: Buffer.from('{"a":1}'),
      arrivedAtMs: NOW_MS,
      deliveryId: "1",
    });
    expect(run.opens).toBe(1);
    expect(run.warnings).toEqual([]);
  });

  it("delivers events that arrive at once in batches of limited size", async () => {
    const { run } = await runOnce(streamOf(messages(...Array.from({ length: 1_000 }, (_, n) => String(n)))));
    expect(dataOf(run)).toEqual(Array.from({ length: 1_000 }, (_, n) => String(n)));
    expect(Math.max(...run.batchSizes)).toBeLessThanOrEqual(256);
    expect(run.batchSizes.length).toBeLessThan(100);
  });

  it("delivers the same events regardless of how its bytes are split into packets", async () => {
    const text =
      "\uFEFF: hi\r\nid: 1\r\ndata: ü😀\r\ndata: b\r\n\r\nevent: x\rdata\r\rretry: 5\n\nid: a\0b\ndata: c\n\n\nid: 9\ndata: d\r\r";
    const { run } = await runOnce(streamOf(...[...Buffer.from(text)].map((byte) => Uint8Array.of(byte))));
    expect(run.taken).toEqual([
      { event: "message", data: "ü😀\nb", id: "1", cursor: at("1") },
      { event: "x", data: "", id: "1/2", cursor: at("1", 2) },
      { event: "message", data: "c", id: "1/3", cursor: at("1", 3) },
      { event: "message", data: "d", id: "9", cursor: at("9") },
    ]);
  });

  it("accepts any event name, including names that clients use internally", async () => {
    const names = ["error", "open", "message", "__proto__", "constructor", "dispatchEvent", "ü x"];
    const text = names.map((name, n) => `event: ${name}\nid: ${n}\ndata: ${n}\n\n`).join("");
    await using server = await startRawServer(streamOf(text));
    const run = createRun({ url: server.url });
    expect(await client.run(run)).toEqual({ kind: "done" });
    expect(run.taken.map(({ event, id }) => [event, id])).toEqual(names.map((name, n) => [name, `${n}`]));
    const only = createRun({ url: server.url, eventNames: ["error"], stopOn: { event: "open" } });
    expect(await client.run(only)).toMatchObject({ kind: "finished" });
    expect(dataOf(only)).toEqual(["0"]);
  });

  it("gives an event no delivery id if the server has sent no event id or has reset it", async () => {
    const { run } = await runOnce(
      streamOf(messages("1"), "id: x\ndata: 2\n\nid\ndata: 3\n\n", messages("4")),
    );
    expect(idsOf(run)).toEqual([undefined, "x", undefined, undefined]);
    expect(run.taken.map(({ cursor }) => cursor)).toEqual([at("", 0), at("x"), at("", 0), at("", 0)]);
    expect(run.deliveries.map(({ headers }) => headers["last-event-id"])).toEqual([
      undefined,
      "x",
      undefined,
      undefined,
    ]);
  });

  it.each([
    ["json", "application/json"],
    ["text", "text/plain"],
    ["jsonLines", "application/x-ndjson"],
  ])("with `dataFormat: %s` delivers its events with content type %s", async (dataFormat, contentType) => {
    const { run } = await runOnce(streamOf("data: 1\ndata: 2\n\n"), { dataFormat });
    expect(run.deliveries).toMatchObject([
      { headers: { "content-type": contentType }, body: Buffer.from("1\n2") },
    ]);
  });

  it("uses the hash of a long event id as delivery id, and resumes with the full event id", async () => {
    const id = "ü".repeat(600);
    const { run } = await runOnce(
      streamOf(`id: ${id}\ndata: 1\n\ndata: 2\n\nid: ${id.slice(0, 512)}\ndata: 3\n\n`),
    );
    const [first, second, third] = idsOf(run);
    expect(first).toMatch(/^sha256:[\w-]{43}$/);
    expect(second).toBe(`${first}/2`);
    expect(third).toBe(id.slice(0, 512));
    expect(run.taken[0]?.cursor).toBe(at(id));
  });
});

describe("a resumed event stream", () => {
  it("sends Last-Event-ID in UTF-8, and continues to number the events after that id", async () => {
    const script = streamOf("data: a\n\ndata: b\n\nid: 8\ndata: c\n\n");
    const { run, call } = await runOnce(script, {}, { cursor: at("7ü", 3) });
    expect(call()).toMatchObject({ headers: { "last-event-id": Buffer.from("7ü").toString("latin1") } });
    expect(idsOf(run)).toEqual(["7ü/2", "7ü/3", "8"]);
    expect(run.warnings).toEqual([]);
  });

  it("gives an event that the server sends again the same delivery id as before", async () => {
    const script = streamOf("id: 7\ndata: a\n\ndata: b\n\nid: 7\ndata: c\n\n");
    const first = await runOnce(script);
    const again = await runOnce(script, {}, { cursor: first.run.stored ?? "" });
    expect(idsOf(first.run)).toEqual(["7", "7/2", "7/3"]);
    expect(idsOf(again.run)).toEqual(["7", "7/2", "7/3"]);
  });

  it("gives the same delivery ids as an uninterrupted stream if its last id came without an event", async () => {
    const first = await runOnce(streamOf("id: 1\ndata: a\n\nid: 2\n\n"));
    expect(first.run.stored).toBe(at("2"));
    const rest = streamOf("data: b\n\n");
    const uncut = await runOnce(streamOf("id: 2\n\ndata: b\n\n"));
    const again = await runOnce(rest, {}, { cursor: at("2") });
    expect(idsOf(uncut.run)).toEqual(["2/2"]);
    expect(idsOf(again.run)).toEqual(["2/2"]);
  });

  it("sends the last event id in the query instead of a header if configured", async () => {
    const config = { resume: { mode: "query", param: "since" }, query: { a: "1 2" } };
    const { call } = await runOnce(streamOf(messages("1")), config, { cursor: at("x&y") });
    expect(call()).toMatchObject({ target: "/stream?a=1%202&since=x%26y" });
    expect(call().headers).not.toHaveProperty("last-event-id");
  });

  it("starts at the event id in `startAt` if no cursor is stored", async () => {
    const config = { startAt: { lastEventId: "41" } };
    const first = await runOnce(streamOf(), config);
    expect(first.call()).toMatchObject({ headers: { "last-event-id": "41" } });
    const later = await runOnce(streamOf(), config, { cursor: at("50") });
    expect(later.call()).toMatchObject({ headers: { "last-event-id": "50" } });
    expect(first.run.warnings).toEqual([]);
  });

  it("warns that events may be missing if there is no last event id to resume from", async () => {
    const first = await runOnce(streamOf(messages("1", "2")));
    expect(first.run.warnings).toEqual([]);
    expect(first.run.stored).toBe(at("", 0));
    const again = await runOnce(streamOf(messages("3")), {}, { cursor: first.run.stored ?? "" });
    expect(again.run.warnings).toEqual(["gap"]);
    expect(again.call().headers).not.toHaveProperty("last-event-id");
    const withoutResume = { resume: { mode: "none" } };
    const none = await runOnce(streamOf("data: 1\n\n"), withoutResume, { cursor: at("4") });
    expect(none.run.warnings).toEqual(["gap"]);
    expect(none.call().headers).not.toHaveProperty("last-event-id");
    expect(idsOf(none.run)).toEqual([undefined]);
  });

  it("ends as broken if its last event id is not allowed in a header", async () => {
    const { end } = await runOnce(streamOf(), {}, { cursor: at("a\x01") });
    expect(end).toMatchObject({ kind: "broken", code: "unsendable_id" });
  });
});

describe("an event whose name the channel ignores", () => {
  it("moves the cursor, with one write for 500 such events", async () => {
    const frames = Array.from({ length: 500 }, (_, n) => `id: ${n}\nevent: other\ndata: x\n\n`);
    const { run } = await runOnce(streamOf(frames.join("")), { eventNames: ["made"] });
    expect(run.taken).toEqual([]);
    expect(run.moves).toEqual([at("499")]);
  });

  it("moves the cursor while the stream is still open", async () => {
    await using server = await startRawServer(openStreamOf("id: 1\nevent: other\ndata: x\n\n"));
    const run = createRun({ url: server.url, eventNames: ["made"] });
    const running = client.run(run);
    await until(() => run.moves.length === 1);
    run.controller.abort();
    await running;
    expect(run.moves).toEqual([at("1")]);
  });

  it("is counted when events without ids are numbered, so that delivery ids do not depend on `eventNames`", async () => {
    const text = "id: 1\ndata: a\n\nevent: other\ndata: b\n\ndata: c\n\n";
    const { run } = await runOnce(streamOf(text), { eventNames: ["message"] });
    expect(idsOf(run)).toEqual(["1", "1/3"]);
    expect(run.moves).toEqual([]);
  });
});

describe("the request of an SSE channel", () => {
  it("has the method, headers and body in the channel's settings", async () => {
    const config = {
      method: "POST",
      body: '{"q":1}',
      headers: { "X-Trace": "1", "Cache-Control": "no-cache" },
    };
    const { call } = await runOnce(streamOf(), config);
    expect(call()).toMatchObject({
      method: "POST",
      body: '{"q":1}',
      headers: {
        accept: "text/event-stream",
        "content-type": "application/json",
        "cache-control": "no-cache",
        "x-trace": "1",
      },
    });
  });
});

describe("a failed write of an SSE event", () => {
  it("closes the connection and does not move the cursor", async () => {
    await using server = await startRawServer(openStreamOf(messages("1", "2", "3")));
    const failure = new UnavailableError("no Redis");
    const run = createRun({ url: server.url }, { ingest: () => Promise.reject(failure) });
    await expect(client.run(run)).rejects.toBe(failure);
    await until(() => server.calls[0]?.socket.destroyed === true);
    expect(run.stored).toBeUndefined();
  });

  it("is reported even if the stream reached its final event before the write failed", async () => {
    const failure = new UnavailableError("no Redis");
    const ingest = async () => {
      await tick();
      throw failure;
    };
    await expect(
      runOnce(openStreamOf("event: bye\ndata: 1\n\n"), { stopOn: { event: "bye" } }, { ingest }),
    ).rejects.toBe(failure);
  });

  it("closes the connection, and reports why the event was rejected", async () => {
    const ingest = async () => ({ kind: "tooManyItems", limit: 1000 }) as const;
    const { end } = await runOnce(openStreamOf(messages("[]")), {}, { ingest });
    expect(end).toMatchObject({ kind: "failed", code: "refused_event", isRejection: true });
  });
});

describe("an SSE event or event id that is too large", () => {
  it("closes the connection with an error that names `maxEventBytes`, after earlier events were accepted", async () => {
    const script = openStreamOf(`id: 1\ndata: a\n\ndata: ${"x".repeat(200_000)}`);
    const { end, run } = await runOnce(script, { maxEventBytes: 100_000 });
    expect(end).toMatchObject({
      kind: "failed",
      code: "event_too_large",
      isRejection: true,
      message: expect.stringContaining("maxEventBytes"),
    });
    expect(run.stored).toBe(at("1"));
  });

  it("closes the connection if the event id is too long to be sent as Last-Event-ID", async () => {
    const { end } = await runOnce(openStreamOf(`id: ${"x".repeat(8193)}\ndata: a\n\n`));
    expect(end).toMatchObject({ kind: "failed", code: "id_too_long", isRejection: true });
  });
});
