import { describe, expect, it } from "vitest";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);

const schemaOf = (...required: string[]) => ({ type: "object", required });
const definition = (schema?: object) => ({
  type: "order/created",
  idPath: "$.id",
  ...(schema && { schema }),
});

const install = (events: readonly object[]) =>
  spine.install({ uid: "main", kind: "webhook", config: {}, events });

const change = (app: { id: string }, events: readonly object[]) =>
  spine.api.call.put(`/apps/${app.id}/channels/main`, { events });

let deliveries = 0;

/** Delivers an item and returns the `dataschema` of its event. */
async function deliver(app: { id: string; channels: readonly { id: string }[] }, item: object = {}) {
  const { id } = await spine.api.call.get(`/apps/${app.id}/channels/main`);
  const { events } = await spine.send(id, { id: `e${++deliveries}`, ...item });
  const entry = await spine.topics.findEntry(events[0]?.topic ?? "", events[0]?.entryId ?? "");
  return entry?.fields.dataschema;
}

const baseOf = (app: { id: string }) => `/apps/${app.id}/channels/main/schemas`;
const urlOf = (app: { id: string }, version: number) =>
  `https://inlet.example/v1${baseOf(app)}/order%2Fcreated/${version}`;
const read = (url = "") => spine.api.call.get(url.replace("https://inlet.example/v1", ""));

describe("the schema versions of a definition", () => {
  it("name in each event the schema that its data was validated with, and the API returns it", async () => {
    const app = await install([definition(schemaOf("id"))]);
    const first = await deliver(app);
    expect(first).toBe(urlOf(app, 1));
    await change(app, [definition(schemaOf("id", "total"))]);
    const second = await deliver(app, { total: 1 });
    expect(second).toBe(urlOf(app, 2));
    expect(await read(first)).toEqual(schemaOf("id"));
    expect(await read(second)).toEqual(schemaOf("id", "total"));
    expect(await read(baseOf(app))).toEqual([
      { type: "order/created", version: 1, isCurrent: false, createdAt: expect.any(String) },
      { type: "order/created", version: 2, isCurrent: true, createdAt: expect.any(String) },
    ]);
    expect(await read(`${baseOf(app)}?type=other`)).toEqual([]);
    const { status, body } = await spine.api.call("GET", `${baseOf(app)}/order%2Fcreated/3`);
    expect([status, body.message]).toEqual([404, expect.stringContaining("schema version")]);
  });

  it("keep their number when a schema comes back, also in a channel that was deleted and created again", async () => {
    const app = await install([definition(schemaOf("id"))]);
    const first = await deliver(app);
    await change(app, [definition()]);
    expect(await deliver(app)).toBeUndefined();
    await change(app, [definition(schemaOf("id"))]);
    expect(await deliver(app)).toBe(first);
    await spine.api.call("DELETE", `/apps/${app.id}/channels/main`);
    const again = { uid: "main", kind: "webhook", config: {}, events: [definition(schemaOf("kind"))] };
    await spine.api.call("POST", `/apps/${app.id}/channels`, again);
    expect(await deliver(app, { kind: "a" })).toBe(urlOf(app, 2));
    expect(await read(first)).toEqual(schemaOf("id"));
  });

  it("are not named by changes that leave the schema as it is", async () => {
    const app = await install([definition(schemaOf("id"))]);
    await change(app, [{ ...definition(schemaOf("id")), subjectPath: "$.id" }]);
    expect(await deliver(app)).toBe(urlOf(app, 1));
  });

  it("are the newest 20", async () => {
    const app = await install([definition(schemaOf("v0"))]);
    for (let version = 1; version <= 20; version++) await change(app, [definition(schemaOf(`v${version}`))]);
    const versions = await read(baseOf(app));
    expect(versions.map(({ version }: { version: number }) => version)).toEqual(
      Array.from({ length: 20 }, (_, at) => at + 2),
    );
  });

  it("keep the `dataschema` of a sender's CloudEvent", async () => {
    const app = await spine.install({
      uid: "main",
      kind: "cloudevents",
      config: {},
      events: [{ type: "order/created", schema: schemaOf("id") }],
    });
    const send = async (attributes: object) => {
      const { id } = await spine.api.call.get(`/apps/${app.id}/channels/main`);
      const event = { specversion: "1.0", id: `c${++deliveries}`, source: "/s", type: "order/created" };
      const body = JSON.stringify({ ...event, ...attributes, data: { id: 1 } });
      const { events } = await spine.send(id, body, { "content-type": "application/cloudevents+json" });
      const entry = await spine.topics.findEntry(events[0]?.topic ?? "", events[0]?.entryId ?? "");
      return entry?.fields.dataschema;
    };
    expect(await send({ dataschema: "https://sender.example/schema" })).toBe("https://sender.example/schema");
    expect(await send({})).toBe(urlOf(app, 1));
  });
});
