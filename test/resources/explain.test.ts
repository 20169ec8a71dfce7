import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestSpine, type TestSpine } from "../support/spine.ts";

let spine: TestSpine;
beforeAll(async () => {
  spine = await startTestSpine();
});
afterAll(() => spine[Symbol.asyncDispose]());

const push = {
  type: "push",
  typePath: "$.type",
  idPath: "$.id",
  schema: { type: "object", properties: { n: { type: "integer" } } },
};
const pull = { type: "pull", typePath: "$.type", idPath: "$.id", payloadPath: "$.data" };

/** An app with one channel, what explains its deliveries, and its topics' lengths. */
async function install(config: object = {}) {
  const app = await spine.install({ uid: "main", kind: "webhook", config, events: [push, pull] });
  const [{ id: channelId }] = app.channels;
  const path = `/apps/${app.id}`;
  return {
    path,
    channelId,
    send: (body: unknown) => spine.send(channelId, body),
    explain: (body: object) => spine.api.call("POST", `${path}/channels/${channelId}/explain`, body),
  };
}

describe("an explanation", () => {
  it("says of each step what it yields, as a delivery would go, and publishes nothing", async () => {
    const { explain, path } = await install({ itemsPath: "$.items" });
    const items = [
      { type: "push", id: 1, n: 2 },
      { type: "pull", id: 7, data: [1.0] },
      { type: "push", id: 2, n: "x" },
      { type: "pusj", id: 3 },
    ];
    const { status, body } = await explain({ body: JSON.stringify({ items }) });
    expect([status, body.verification, body.received]).toEqual([
      200,
      { result: "verified", message: null },
      4,
    ]);
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
    expect((await spine.api.call("GET", `${path}/quarantine`)).body).toEqual([]);
    const topics = (await spine.api.call("GET", `${path}/topics`)).body;
    expect(topics.every(({ length }: { length: number }) => length === 0)).toBe(true);
  });

  it("knows which ids are known, with the same data and with other", async () => {
    const { explain, send } = await install();
    const { events } = await send({ type: "push", id: "a", n: 1 });
    const known = await explain({ body: '{"type":"push","id":"a","n":1}' });
    expect(known.body.items[0].events).toMatchObject([{ status: "duplicate", entryId: events[0]?.entryId }]);
    const other = await explain({ body: '{"type":"push","id":"a","n":2}' });
    expect(other.body.items[0].events).toMatchObject([{ status: "conflict", entryId: events[0]?.entryId }]);
  });

  it("tries other definitions, and names what does not compile", async () => {
    const { explain } = await install();
    const body = '{"kind":"x"}';
    const tried = await explain({ body, events: [{ type: "x", typePath: "$.kind" }] });
    expect(tried.body.items[0].events).toMatchObject([{ type: "x" }]);
    const wrong = await explain({ body, events: [{ type: "x", typePath: "kind" }] });
    expect([wrong.status, wrong.body.details[0].path]).toEqual([400, "events[0].typePath"]);
  });

  it("says why a sender is refused, or believes it when asked to", async () => {
    const { explain } = await install({ verification: { scheme: "hmac", name: "x-signature" } });
    const body = '{"type":"push","id":1,"n":1}';
    const refused = await explain({ body });
    expect(refused.body).toMatchObject({
      verification: { result: "refused", message: expect.any(String) },
      items: [],
    });
    const believed = await explain({ body, verify: false });
    expect(believed.body).toMatchObject({
      verification: { result: "skipped" },
      items: [{ events: [{ id: "1" }] }],
    });
  });

  it("lets rules see no credential, believed or not", async () => {
    const { explain } = await install();
    const events = [{ type: "e", idPath: "$headers.authorization" }];
    const { body } = await explain({
      body: "{}",
      events,
      verify: false,
      headers: { Authorization: "Bearer x" },
    });
    expect(body.items[0].failures).toMatchObject([{ reason: "id_missing" }]);
  });

  it("says what is no body, and takes bytes in base64", async () => {
    const { explain } = await install();
    expect((await explain({ body: "{" })).body.items).toMatchObject([
      { failures: [{ reason: "invalid_body" }] },
    ]);
    const base64 = Buffer.from('{"type":"push","id":1}').toString("base64");
    expect((await explain({ body: base64, bodyEncoding: "base64" })).body.items[0].events).toHaveLength(1);
  });
});

describe("a preview of quarantine", () => {
  it("counts what definitions would release, and moves nothing", async () => {
    const { path, channelId, send } = await install({ onNoMatch: "quarantine" });
    await send({ type: "new", id: 1 });
    await send({ type: "push", id: 2, n: "x" });
    const preview = (body: object) =>
      spine.api.call("POST", `${path}/quarantine/preview`, { channelId, ...body });
    const now = await preview({});
    expect(now.body).toMatchObject({ matched: 2, released: 0 });
    const tried = await preview({
      events: [
        { type: "new", typePath: "$.type" },
        { ...push, schema: true },
      ],
    });
    expect(tried.body).toMatchObject({ matched: 2, released: 2 });
    expect(tried.body.items.map(({ reason }: { reason: string }) => reason)).toEqual([
      "no_match",
      "schema_mismatch",
    ]);
    const filtered = await preview({ reason: "no_match", limit: 1 });
    expect(filtered.body).toMatchObject({ matched: 1, items: [{ isReleased: false }] });
    const [{ id }] = (await spine.api.call("GET", `${path}/quarantine`)).body;
    const item = (await spine.api.call("GET", `${path}/quarantine/${id}`)).body;
    expect(item.explanation).toMatchObject([{ failures: [{ reason: "no_match" }], closest: "push" }]);
  });
});
