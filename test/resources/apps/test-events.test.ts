import { expect, it } from "vitest";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);
const pathOf = (app: { readonly id: string }, uid = "main") => `/apps/${app.id}/channels/${uid}/test`;
const eventsOf = (app: { readonly id: string }) => spine.api.call.get(`/apps/${app.id}/events`);

it("a request for a test event publishes the sample delivery of the channel's preset, marked as a test", async () => {
  const app = await spine.install({ uid: "main", kind: "webhook", config: { preset: "github" }, events: [] });
  // The channel has no secret yet. Test events need none.
  const tested = await spine.api.call.post(pathOf(app));
  expect(tested).toMatchObject({ received: 1, events: [{ entryId: expect.any(String) }], failures: [] });
  await spine.api.call.post(pathOf(app));
  const published = await eventsOf(app);
  expect(published).toHaveLength(2);
  expect(published.every((event: { inlettest: string }) => event.inlettest === "true")).toBe(true);
  const audit = await spine.api.call.get(`/audit?entity=channel&entityId=${app.id}/main`);
  expect(audit.filter(({ action }: { action: string }) => action === "test")).toHaveLength(2);
});

it("a test event does not make a real event with the same id a duplicate, and its failures are not stored in quarantine", async () => {
  const events = [{ type: "a", typePath: "$.type", idPath: "$.id", schema: { required: ["n"] } }];
  const app = await spine.install({ uid: "main", kind: "webhook", config: {}, events });
  const body = JSON.stringify({ type: "a", id: "1", n: 1 });
  await spine.api.call.post(pathOf(app), { body });
  const sent = await spine.send(app.channels[0].id, body);
  expect(sent).toMatchObject({ published: 1, duplicates: 0 });
  const failing = await spine.api.call.post(pathOf(app), { body: '{"type":"a","id":"2"}' });
  expect(failing).toMatchObject({ events: [], failures: [{ reason: "schema_mismatch", item: null }] });
  expect(await spine.api.call.get(`/apps/${app.id}/quarantine`)).toEqual([]);
});

it("a test event without a preset uses a minimal delivery of the channel kind, but a polling or streaming channel requires a body", async () => {
  const app = await spine.install(
    { uid: "hook", kind: "webhook", config: {}, events: [{ type: "any" }] },
    { uid: "ce", kind: "cloudevents", config: {}, events: [{ type: "com.example.made" }] },
    {
      uid: "feed",
      kind: "sse",
      events: [{ type: "tick" }],
      config: { url: "https://feed.example.invalid/" },
    },
  );
  for (const [uid, type] of [
    ["hook", "any"],
    ["ce", "com.example.made"],
  ])
    expect(await spine.api.call.post(pathOf(app, uid))).toMatchObject({ events: [{ type }] });
  expect(await spine.api.call.expectRejection("POST", pathOf(app, "feed"), {})).toMatchObject({
    status: 400,
    paths: ["body"],
  });
  const given = { body: '{"n":1}', headers: { "Content-Type": "application/json" } };
  expect(await spine.api.call.post(pathOf(app, "feed"), given)).toMatchObject({ events: [{ type: "tick" }] });
});

it("a test event is rejected if the channel is paused, or if the caller may only read channels", async () => {
  const app = await spine.install({ uid: "main", kind: "webhook", config: {}, events: [{ type: "a" }] });
  const reader = spine.api.as(await spine.api.keyWith("channels.read", "apps.write"));
  expect(await reader.expectRejection("POST", pathOf(app), {})).toMatchObject({ status: 403 });
  await spine.api.call.post(`/apps/${app.id}/channels/main/pause`);
  expect(await spine.api.call.expectRejection("POST", pathOf(app), {})).toMatchObject({ status: 409 });
  expect(await eventsOf(app)).toEqual([]);
});
