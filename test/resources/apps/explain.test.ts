import { CloudEvent } from "cloudevents";
import { describe, expect, it } from "vitest";
import { givenChannel } from "../../support/channels.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);

const push = {
  type: "push",
  typePath: "$.type",
  idPath: "$.id",
  schema: { type: "object", properties: { n: { type: "integer" } } },
};
const pull = { type: "pull", typePath: "$.type", idPath: "$.id", payloadPath: "$.data" };

/** Installs an app with one channel, and returns functions that send to the channel or explain a delivery. */
async function install(config: object = {}) {
  const channel = await givenChannel(spine, { config, events: [push, pull] });
  return {
    path: channel.appPath,
    channelId: channel.id,
    send: channel.send,
    explain: (body: object) => spine.api.call.post(`${channel.path}/explain`, body),
  };
}

describe("explaining a delivery (processing it without publishing)", () => {
  it("returns the result of each processing step, and publishes no event", async () => {
    const { explain, path } = await install({ itemsPath: "$.items" });
    const items = [
      { type: "push", id: 1, n: 2 },
      { type: "pull", id: 7, data: [1.0] },
      { type: "push", id: 2, n: "x" },
      { type: "pusj", id: 3 },
    ];
    const body = await explain({ body: JSON.stringify({ items }) });
    expect(body).toMatchObject({ verification: { result: "verified", message: null }, received: 4 });
    const [first, second, third, fourth] = body.items;
    expect(first.events).toMatchObject([{ id: "1", type: "push", status: "new", entryId: null }]);
    expect(first.definitions).toMatchObject([
      {
        type: "push",
        matches: true,
        typePath: { path: "$.type", values: ["push"] },
        idPath: { values: ["1"] },
        failure: null,
      },
      { type: "pull", matches: false, payloadPath: { path: "$.data", values: [] }, failure: null },
    ]);
    expect(second.events).toMatchObject([{ id: "7", data: "[1]" }]);
    expect(third).toMatchObject({
      events: [],
      failures: [{ reason: "schema_mismatch", path: "/n", definitions: ["push"] }],
    });
    expect(third.definitions[0].failure).toMatchObject({ reason: "schema_mismatch" });
    expect(fourth).toMatchObject({ failures: [{ reason: "no_match" }], closest: "push" });
    expect(await spine.api.call.get(`${path}/quarantine`)).toEqual([]);
    const topics = await spine.api.call.get(`${path}/topics`);
    expect(topics.every(({ length }: { length: number }) => length === 0)).toBe(true);
  });

  it("returns each event as it would be published, in CloudEvents structured format", async () => {
    const { explain, send, path } = await install();
    const body = { type: "pull", id: "a", data: { n: 1.5, text: "ü" } };
    const { items } = await explain({ body: JSON.stringify(body) });
    const [{ event, topic }] = items[0].events;
    expect(new CloudEvent(event)).toMatchObject({ id: "a", type: "pull", data: body.data });
    const sent = await send(body);
    const published = await spine.api.call.get(`${path}/events/${topic}/${sent.events[0]?.entryId}`);
    expect(published).toMatchObject({ ...event, time: expect.any(String) });
  });

  it("reports a duplicate for a known id with the same data, and a conflict for a known id with other data", async () => {
    const { explain, send } = await install();
    const { events } = await send({ type: "push", id: "a", n: 1 });
    const known = await explain({ body: '{"type":"push","id":"a","n":1}' });
    expect(known.items[0].events).toMatchObject([{ status: "duplicate", entryId: events[0]?.entryId }]);
    const other = await explain({ body: '{"type":"push","id":"a","n":2}' });
    expect(other.items[0].events).toMatchObject([{ status: "conflict", entryId: events[0]?.entryId }]);
  });

  it("can use event definitions from the request, and rejects a definition with an invalid path", async () => {
    const { explain, path, channelId } = await install();
    const body = '{"kind":"x"}';
    const tried = await explain({ body, events: [{ type: "x", typePath: "$.kind" }] });
    expect(tried.items[0].events).toMatchObject([{ type: "x" }]);
    const wrong = { body, events: [{ type: "x", typePath: "kind" }] };
    expect(
      await spine.api.call.expectRejection("POST", `${path}/channels/${channelId}/explain`, wrong),
    ).toMatchObject({ status: 400, paths: ["events[0].typePath"] });
  });

  it("rejects a schema that does not compile with the same error as a change of the channel", async () => {
    const { path, channelId } = await install();
    const events = [{ type: "x" }, { type: "y", schema: { properties: { a: { type: "int" } } } }];
    const refusal = {
      status: 400,
      code: "invalid_parameters",
      paths: ["events[1].schema/properties/a/type"],
    };
    const explain = { body: '{"kind":"x"}', events };
    expect(
      await spine.api.call.expectRejection("POST", `${path}/channels/${channelId}/explain`, explain),
    ).toMatchObject(refusal);
    const preview = { channelId, events };
    expect(await spine.api.call.expectRejection("POST", `${path}/quarantine/preview`, preview)).toMatchObject(
      refusal,
    );
  });

  it("reports why verification fails, and skips verification if verify is false", async () => {
    const { explain } = await install({ verification: { scheme: "hmac", name: "x-signature" } });
    const body = '{"type":"push","id":1,"n":1}';
    const refused = await explain({ body });
    expect(refused).toMatchObject({
      verification: { result: "refused", message: expect.any(String) },
      items: [],
    });
    const unverified = await explain({ body, verify: false });
    expect(unverified).toMatchObject({
      verification: { result: "skipped" },
      items: [{ events: [{ id: "1" }] }],
    });
  });

  it("hides the sender's credentials from the paths of event definitions, even if verification is skipped", async () => {
    const { explain } = await install();
    const events = [{ type: "e", idPath: "$headers.authorization" }];
    const { items } = await explain({
      body: "{}",
      events,
      verify: false,
      headers: { Authorization: "Bearer x" },
    });
    expect(items[0].failures).toMatchObject([{ reason: "id_missing" }]);
  });

  it("reports a body that cannot be parsed, and accepts a binary body in base64", async () => {
    const { explain } = await install();
    const malformed = await explain({ body: "{" });
    expect(malformed.items).toMatchObject([{ failures: [{ reason: "invalid_body" }] }]);
    const base64 = Buffer.from('{"type":"push","id":1}').toString("base64");
    expect((await explain({ body: base64, bodyEncoding: "base64" })).items[0].events).toHaveLength(1);
  });
});

describe("a preview of a redrive from quarantine", () => {
  it("counts the items that new event definitions would publish, without publishing them", async () => {
    const { path, channelId, send } = await install({ onNoMatch: "quarantine" });
    await send({ type: "new", id: 1 });
    await send({ type: "push", id: 2, n: "x" });
    const preview = (body: object) =>
      spine.api.call.post(`${path}/quarantine/preview`, { channelId, ...body });
    expect(await preview({})).toMatchObject({ matched: 2, released: 0 });
    const events = [
      { type: "new", typePath: "$.type" },
      { ...push, schema: true },
    ];
    expect(await preview({ events })).toMatchObject({
      matched: 2,
      released: 2,
      items: [{ reason: "no_match" }, { reason: "schema_mismatch" }],
    });
    const filtered = await preview({ reason: "no_match", limit: 1 });
    expect(filtered).toMatchObject({ matched: 1, items: [{ isReleased: false }] });
    const items = await spine.api.call.get(`${path}/quarantine`);
    expect(items).toHaveLength(2);
    expect(await spine.api.call.get(`${path}/quarantine/${items[0].id}`)).toMatchObject({
      explanation: [{ failures: [{ reason: "no_match" }], closest: "push" }],
    });
  });
});
