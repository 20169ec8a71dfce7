import { type CloudEvent, HTTP } from "cloudevents";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import {
  createBatchRequest,
  EMPTY_BATCH_BYTES,
  readRejected,
  sizeInBatch,
} from "../../src/event/batch-request.ts";
import type { DeliveredEvent } from "../../src/event/handler-request.ts";

const SECRET = `whsec_${Buffer.from("0123456789abcdef01234567").toString("base64")}`;

const eventOf = (id: string, source: string, ...more: string[]): DeliveredEvent => ({
  topic: "events.t",
  entryId: `${id.length}-${id.charCodeAt(0)}`,
  fields: ["specversion", "1.0", "id", id, "source", source, "type", "t", ...more],
});
const requestOf = (events: readonly DeliveredEvent[], atMs = Date.now()) =>
  createBatchRequest(events, {
    url: "https://handler.example/",
    secret: SECRET,
    subscriptionId: "sub_1",
    atMs,
  });

describe("the request with a batch", () => {
  const events = [
    eventOf("1", "/a", "datacontenttype", "application/json", "data", '{ "n": 12345678901234567890 }'),
    eventOf("2", "/a", "datacontenttype", "text/plain", "data", '"é"', "partitionkey", "k"),
    eventOf("3", "/b", "datacontenttype", "image/png", "data_base64", "AP+A"),
    eventOf("4", "/b"),
  ];

  it("is a CloudEvents batch that `cloudevents` parses, signed as a whole", () => {
    const { headers, body } = requestOf(events);
    const parsed = HTTP.toEvent({ headers, body: String(body) }) as CloudEvent[];
    expect(parsed.map(({ id, source }) => [id, source])).toEqual([
      ["1", "/a"],
      ["2", "/a"],
      ["3", "/b"],
      ["4", "/b"],
    ]);
    expect(parsed[1]).toMatchObject({ data: '"é"', partitionkey: "k" });
    expect(parsed[2]?.data_base64).toBe("AP+A");
    expect(new Webhook(SECRET).verify(String(body), headers)).toHaveLength(4);
    expect(() => new Webhook(SECRET).verify(`${body} `, headers)).toThrow();
  });

  it("has JSON data exactly as the sender wrote it, and the announced size", () => {
    const { body } = requestOf(events);
    expect(body).toContain('"data":{ "n": 12345678901234567890 }');
    const sum = events.reduce((bytes, { fields }) => bytes + sizeInBatch(fields), 0);
    expect(Buffer.byteLength(body)).toBe(sum + EMPTY_BATCH_BYTES);
  });

  it("has the same id for each attempt at the same events, and another id for other events", () => {
    const idOf = (...args: Parameters<typeof requestOf>): string | undefined =>
      requestOf(...args).headers["webhook-id"];
    expect(idOf(events, 1)).toBe(idOf(events, 9_999));
    expect(idOf(events)).not.toBe(idOf(events.slice(1)));
    expect(idOf(events.slice(0, 1))).toMatch(/^msg_sub_1_/);
  });
});

describe("the response to a batch", () => {
  const [a1, a2, b1] = [eventOf("1", "/a"), eventOf("2", "/a"), eventOf("1", "/b")];
  const read = (body: string): readonly DeliveredEvent[] | undefined => {
    const rejected = readRejected(Buffer.from(body), [a1, a2, b1]);
    return rejected && [...rejected];
  };

  it.each([
    [""],
    ["OK"],
    ["{}"],
    ["null"],
    ["[]"],
    ['{"failed": []}'],
  ])("accepts all events if it is %j", (body) => {
    expect(read(body)).toEqual([]);
  });

  it("rejects the events that `failed` lists, by source and id or by id alone", () => {
    expect(read('{"failed": [{"source": "/b", "id": "1"}]}')).toEqual([b1]);
    expect(read('{"failed": [{"id": "2"}, {"source": "/a", "id": "1"}]}')).toEqual([a2, a1]);
    expect(read('{"failed": ["1"]}')).toEqual([a1, b1]);
  });

  it.each([
    ['{"failed": true}'],
    ['{"failed": {"id": "1"}}'],
    ['{"failed": [1]}'],
    ['{"failed": [null]}'],
    ['{"failed": ["3"]}'],
    ['{"failed": ["1", "2", "1", "2"]}'],
    ['{"failed": ["1", {"source": "/c", "id": "1"}]}'],
  ])("is unreadable if it is %s", (body) => {
    expect(read(body)).toBe(undefined);
  });
});
