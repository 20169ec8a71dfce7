import { describe, expect, it } from "vitest";
import { EventStreamParser, EventTooLargeError } from "../../../src/channels/sse/event-stream-parser.ts";
import {
  parse,
  parsesAsTheClientDoes,
  parsesCutStreams,
  parsesStreamsByteByByte,
  parseText,
} from "./event-stream-support.ts";

describe("the event stream parser", () => {
  it("parses random streams according to the standard, wherever they are split", () => parsesCutStreams(500));

  it("parses random streams according to the standard, even if every byte arrives separately", () =>
    parsesStreamsByteByByte(100));

  it("returns the same events as the npm package eventsource", () => parsesAsTheClientDoes(200));

  it("strips one byte order mark at the start, but not a second one", () => {
    expect(parseText("\uFEFFdata: 1\n\n").frames).toMatchObject([{ data: "1" }]);
    expect(parseText("\uFEFF\uFEFFdata: 1\n\ndata: 2\n\n").frames).toMatchObject([{ data: "2" }]);
    expect(parseText("ï»¿data: 1\n\ndata: 2\n\n").frames).toMatchObject([{ data: "2" }]);
    const long = `\uFEFFdata: ${"x".repeat(100)}`;
    expect(parse([Buffer.from(long), Buffer.from("\n\n")]).frames).toMatchObject([{ data: long.slice(7) }]);
  });

  it("distinguishes an id of an event, an id without an event, and an event without an id", () => {
    const text =
      "id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\nid: 3\n\nid: 4\n\nid: 4\ndata: d\n\nid\n\n";
    const messages = [...new EventStreamParser({ maxEventBytes: 100 }).read(Buffer.from(text))];
    expect(messages.map(({ kind, ...rest }) => [kind, "id" in rest ? rest.id : undefined])).toEqual([
      ["frame", "1"],
      ["frame", undefined],
      ["checkpoint", "2"],
      ["frame", undefined],
      ["checkpoint", "3"],
      ["checkpoint", "4"],
      ["frame", "4"],
      ["checkpoint", ""],
    ]);
  });

  it("parses lazily, only as far as its caller reads events", () => {
    const bytes = Buffer.from("data: 1\n\ndata: 22\n\n");
    const messages = new EventStreamParser({ maxEventBytes: 1 }).read(bytes);
    expect(messages.next().value).toMatchObject({ data: "1" });
    expect(() => messages.next()).toThrow(EventTooLargeError);
  });
});

describe("an event that is too large for the event stream parser", () => {
  it("is rejected at the exact byte that exceeds the limit, in one line or in many", () => {
    const exact = "é".repeat(50);
    expect(parseText(`data: ${exact}\n\n`, 100)).toMatchObject({
      isTooLarge: false,
      frames: [{ data: exact }],
    });
    expect(parseText(`data: ${exact}x\n\n`, 100)).toMatchObject({ isTooLarge: true, frames: [] });
    expect(parseText("data: 12345\n".repeat(20), 100).isTooLarge).toBe(true);
    expect(parseText(`data: ${"x\ndata: ".repeat(49)}xx\n\n`, 100).isTooLarge).toBe(false);
  });

  it("ends the parsing, but earlier events are returned", () => {
    const { frames, isTooLarge } = parseText(`data: 1\n\ndata: ${"x".repeat(101)}\n\ndata: 2\n\n`, 100);
    expect(isTooLarge).toBe(true);
    expect(frames.map(({ data }) => data)).toEqual(["1"]);
  });

  it("is rejected before its line is complete", () => {
    const chunk = Buffer.from("x".repeat(1000));
    const result = parse([Buffer.from("data: "), ...Array.from({ length: 100 }, () => chunk)], 5_000);
    expect(result.isTooLarge).toBe(true);
  });

  it("is rejected if its name or id never ends", () => {
    const chunks = Array.from({ length: 100 }, () => Buffer.from("x".repeat(1000)));
    for (const field of ["event", "id", "retry"]) {
      expect(parse([Buffer.from(`${field}:`), ...chunks], 5_000).isTooLarge).toBe(true);
      expect(parse([Buffer.from(`${field}:${"x".repeat(100_000)}\n`)], 5_000).isTooLarge).toBe(true);
    }
  });

  it("is measured without comments and unknown fields, because the parser discards them", () => {
    const chunk = Buffer.from("x".repeat(1000));
    const long = Array.from({ length: 100 }, () => chunk);
    const chunks = [
      Buffer.from(": "),
      ...long,
      Buffer.from("\nunknown"),
      ...long,
      Buffer.from("\ndata: 1\n\n"),
    ];
    expect(parse(chunks, 5_000)).toMatchObject({ isTooLarge: false, frames: [{ data: "1" }] });
  });
});
