import { type CloudEvent, HTTP } from "cloudevents";
import { describe, expect, it } from "vitest";
import { structuredEvent } from "../../src/event/typed-event.ts";

const base = ["specversion", "1.0", "id", "1", "source", "/s", "type", "t"];
const attributes = { specversion: "1.0", id: "1", source: "/s", type: "t" };
const printed = (fields: readonly string[], maxDataChars = 1_000): string =>
  JSON.stringify(structuredEvent([...base, ...fields], maxDataChars));

describe("an event as CloudEvents JSON (structured mode)", () => {
  it("contains the numbers in its data exactly as the sender wrote them", () => {
    const data = '{"big":12345678901234567890,"f":[1.0e2,-0,0.10],"n":7}';
    const text = printed(["datacontenttype", "application/json", "data", data]);
    expect(text).toContain(`"data":${data}`);
    const headers = { "content-type": "application/cloudevents+json" };
    const event = HTTP.toEvent({ headers, body: text }) as CloudEvent<{ n: number }>;
    expect(event).toMatchObject({ ...attributes, datacontenttype: "application/json", data: { n: 7 } });
  });

  it.each<readonly [string, readonly string[], object]>([
    ["text as a string", ["datacontenttype", "text/plain", "data", "[1]"], { data: "[1]" }],
    ["bytes in base64", ["datacontenttype", "image/png", "data_base64", "AP8="], { data_base64: "AP8=" }],
    ["no data", [], {}],
    ["a JSON string", ["data", '"x"'], { data: "x" }],
    ["invalid JSON as text", ["data", "{"], { data: "{" }],
    ["null", ["data", "null"], { data: null }],
    [
      "the time exactly as the sender wrote it",
      ["time", "2016-12-31T23:59:60.123456+02:00"],
      { time: "2016-12-31T23:59:60.123456+02:00" },
    ],
    [
      "extensions of any name",
      ["constructor", "a", "validate", "b", "schemaurl", "c", "emit", "d", "datacontentencoding", "e"],
      { constructor: "a", validate: "b", schemaurl: "c", emit: "d", datacontentencoding: "e" },
    ],
  ])("contains %s", (_, fields, expected) => {
    const type = fields[0] === "datacontenttype" ? { datacontenttype: fields[1] } : {};
    expect(JSON.parse(printed(fields))).toEqual({ ...attributes, ...type, ...expected });
  });

  it("omits the data if it exceeds the maximum length", () => {
    expect(JSON.parse(printed(["data", '"long"'], 5))).toEqual(attributes);
    expect(JSON.parse(printed(["data_base64", "AP8AAP8="], 5))).toEqual(attributes);
  });
});
