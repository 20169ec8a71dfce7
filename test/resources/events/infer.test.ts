import { describe, expect, it } from "vitest";
import { itDeep } from "../../support/deep-run.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);

const SCHEMA = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const EVENTS = [
  { type: "push", typePath: "$.type", idPath: "$.id", payloadPath: "$.data", schema: SCHEMA },
  { type: "note", typePath: "$.type", idPath: "$.id", payloadPath: "$.data" },
];

async function installDelivered() {
  const app = await spine.install({ uid: "main", kind: "webhook", config: {}, events: EVENTS });
  let id = 0;
  const deliver = (type: string, data: unknown) =>
    spine.deliver(app.channels[0].id, { type, id: String(++id), data });
  await deliver("push", { n: 1, who: "person-canary" });
  await deliver("push", { n: 2, who: "person-canary", byId: { ord_55512: 1 } });
  await deliver("push", { n: "not-a-number-canary", who: "person-canary" });
  await deliver("note", { text: "hello-canary" });
  return app;
}

const infer = (app: { id: string }, body: object = {}, call = spine.api.call) =>
  call("POST", `/apps/${app.id}/channels/main/definitions/infer`, body);

describe("inferring schemas from a channel's events", () => {
  it("reports the schema, its sources, what fails the current schema, and which items the new one releases", async () => {
    const app = await installDelivered();
    const { status, body } = await infer(app);
    expect(status).toBe(200);
    const [item] = await spine.api.call.get(`/apps/${app.id}/quarantine`);
    expect(body).toEqual({
      isCut: false,
      types: [
        expect.objectContaining({ type: "note", events: 1, quarantined: 0, failing: null, violations: [] }),
        {
          type: "push",
          schema: {
            $schema: "https://json-schema.org/draft/2020-12/schema",
            type: "object",
            properties: {
              n: { type: ["integer", "string"] },
              who: { type: "string" },
              byId: expect.anything(),
            },
            required: ["n", "who"],
          },
          events: 2,
          quarantined: 1,
          failing: 1,
          violations: [{ path: "/n", message: "must be integer", count: 1 }],
          drift: [
            { kind: "type_changed", grade: "breaking", path: "/n", count: 1 },
            { kind: "new_field", grade: "info", path: "/who", count: 3 },
            { kind: "new_field", grade: "info", path: "/byId", count: 1 },
          ],
          released: [item.id],
        },
      ],
    });
    expect(JSON.stringify(body)).not.toMatch(/canary|55512/);
    const audit = await spine.api.call.get(`/audit?entity=quarantinedItem&entityId=${item.id}`);
    expect(audit).toMatchObject([{ action: "read" }]);
  });

  it("reads only the given type and source, and yields values only if asked", async () => {
    const app = await installDelivered();
    const events = await infer(app, { type: "push", from: "events" });
    expect(events.body.types).toMatchObject([{ type: "push", events: 2, quarantined: 0, failing: 0 }]);
    const kept = await infer(app, { from: "quarantine", sample: 1 });
    expect(kept.body.types).toMatchObject([{ type: "push", events: 0, quarantined: 1, failing: 1 }]);
    const withValues = await infer(app, { type: "push", enumValues: true });
    expect(withValues.body.types[0].schema.properties.who).toEqual({
      type: "string",
      enum: ["person-canary"],
    });
    const one = await infer(app, { sample: 1, from: "events" });
    expect(one.body.types).toMatchObject([{ type: "note", events: 1 }]);
  });

  itDeep("ends the sample before it would exceed 16 MiB, and says so", async () => {
    const config = { limits: { maxBodyBytes: 4 * 1024 * 1024 } };
    const app = await spine.install({ uid: "main", kind: "webhook", config, events: EVENTS });
    const text = "x".repeat(3 * 1024 * 1024);
    for (let id = 1; id <= 6; id++)
      await spine.deliver(app.channels[0].id, { type: "note", id: `large${id}`, data: { text } });
    const { body } = await infer(app);
    expect(body).toMatchObject({ isCut: true, types: [{ type: "note", events: 5 }] });
  });

  it("gives a schema that the definition accepts, and that releases the item", async () => {
    const app = await installDelivered();
    const { body } = await infer(app, { type: "push" });
    const [push, note] = EVENTS;
    await spine.api.call.put(`/apps/${app.id}/channels/main`, {
      events: [{ ...push, schema: body.types[0].schema }, note],
    });
    const after = await infer(app, { type: "push" });
    expect(after.body.types).toMatchObject([{ failing: 0, quarantined: 1, released: [expect.any(String)] }]);
  });

  it("rejects an unknown type and a wrong sample, and needs deliveries.read in the same organization", async () => {
    const app = await installDelivered();
    const unknown = await infer(app, { type: "pull" });
    expect(unknown.status).toBe(400);
    expect(unknown.body.details).toEqual([
      {
        path: "type",
        message: 'must be the type of a definition of the channel, such as "push", "note"; got "pull"',
      },
    ]);
    for (const sample of [0, 1_001, 1.5]) expect((await infer(app, { sample })).status).toBe(400);
    const reader = spine.api.as(await spine.api.keyWith("apps.read", "channels.read", "events.read"));
    expect((await infer(app, {}, reader)).status).toBe(403);
    const stranger = spine.api.as(await spine.api.createForeignKey());
    expect((await infer(app, {}, stranger)).status).toBe(404);
  });
});
