import { beforeAll, describe, expect, it } from "vitest";
import { insertDeadLetter } from "../../../src/data/subscriptions/dead-letters.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

interface Match {
  readonly kind: string;
  readonly id: string;
  readonly appId: string | null;
  readonly title: string;
  readonly path: string;
}

const DELIVERY_ID = "0b0e1f8c-of-the-sender";

const spine = opened(startTestSpine);
let appId = "";
let made: Record<
  "delivery" | "item" | "entryId" | "topic" | "ownEventId" | "subscription" | "letter",
  string
>;

const lookUp = async (id: string, call = spine.api.call): Promise<readonly Match[]> =>
  (await call.get(`/lookup?id=${encodeURIComponent(id)}`)).matches;
const kindsOf = (matches: readonly Match[]) => matches.map(({ kind }) => kind);

beforeAll(async () => {
  const app = await spine.install({
    uid: "main",
    kind: "webhook",
    config: {},
    events: [
      { type: "push", typePath: "$.type", idPath: "$.id" },
      { type: "plain", typePath: "$.type" },
    ],
  });
  appId = app.id;
  const [{ id: address }] = app.channels;
  // The first delivery loads code, and its record may be too late to be written.
  const listed = () => spine.api.call.get(`/apps/${appId}/deliveries`);
  await until(async () => {
    await spine.deliver(address, { type: "push", id: DELIVERY_ID }, { "x-request-id": "req-of-the-proxy" });
    await spine.path.recorder.flush();
    return (await listed()).length > 0;
  });
  const [record] = await listed();
  const { quarantine } = await spine.send(address, { type: "push" });
  const { events } = await spine.send(address, { type: "plain" });
  const first = record.events[0];
  const handler = { url: "https://handler.example/" };
  const { id: subscription } = await spine.api.call.post(`/apps/${appId}/events/subscribe`, {
    eventUid: "*",
    handler,
  });
  const { topic, entryId } = first;
  const letter = { subscriptionId: subscription, topic, entryId, type: "push", fields: [], attempts: [] };
  await insertDeadLetter(spine.api.database.db, { ...letter, reason: "HTTP 503" }, Date.now());
  const [{ id: letterId }] = await spine.api.call.get(
    `/apps/${appId}/subscriptions/${subscription}/dead-letters`,
  );
  made = {
    delivery: record.id,
    item: quarantine[0]?.id ?? "",
    entryId: first.entryId,
    topic: first.topic,
    ownEventId: events[0]?.id ?? "",
    subscription,
    letter: letterId,
  };
});

describe("GET /lookup", () => {
  it.each<[string, () => string, string[]]>([
    ["an app by its id", () => appId, ["app"]],
    ["a channel by its uid", () => "main", ["channel"]],
    ["a delivery by its id", () => made.delivery, ["delivery"]],
    ["a delivery by the id of its request", () => "req-of-the-proxy", ["delivery"]],
    ["a delivery and an event by the sender's event id", () => DELIVERY_ID, ["delivery", "event"]],
    ["an event by the id that Inlet gave it", () => made.ownEventId, ["event"]],
    ["an event by its topic and entry id", () => `${made.topic}/${made.entryId}`, ["event"]],
    ["a quarantined item by its id", () => made.item, ["quarantinedItem"]],
    ["a subscription by its id", () => made.subscription, ["subscription"]],
    ["a dead letter by its id", () => made.letter, ["deadLetter"]],
  ])("finds %s, with a path that returns it", async (_, idOf, kinds) => {
    const matches = await lookUp(idOf());
    expect([...new Set(kindsOf(matches))]).toEqual(kinds);
    for (const { kind, id, appId: inApp, path } of matches) {
      expect(inApp).toBe(appId);
      const found = await spine.api.call.get(path);
      expect(kind === "event" ? found.entryId : kind === "channel" ? found.uid : found.id).toBe(id);
    }
  });

  it("finds the API key of the caller and the blueprint of an app by their ids", async () => {
    const { blueprintId } = await spine.api.call.get(`/apps/${appId}`);
    expect(kindsOf(await lookUp(blueprintId))).toContain("blueprint");
    const [key] = await spine.api.call.get("/iam/api-keys");
    const [match] = await lookUp(key.id);
    expect([match?.kind, (await spine.api.call.get(match?.path ?? "")).id]).toEqual(["apiKey", key.id]);
  });

  it.each([
    "nothing",
    "del_00000000000000000000000",
    "evt_00000000000000000000000",
    "a.topic/1-1",
    "a.topic/99999999999999999999-0",
    "/1-1",
    "%",
  ])("returns no match for the unknown id %j", async (id) => {
    expect(await lookUp(id)).toEqual([]);
  });

  it("rejects a request without an id", async () => {
    const { status, body } = await spine.api.call("GET", "/lookup");
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining('"id"')]);
  });

  it("shows only kinds that the caller may read, and nothing of other organizations", async () => {
    const reader = spine.api.as(await spine.api.keyWith("deliveries.read"));
    expect(kindsOf(await lookUp(DELIVERY_ID, reader))).not.toContain("event");
    expect(kindsOf(await lookUp(DELIVERY_ID, reader))).toContain("delivery");
    expect(await lookUp(appId, reader)).toEqual([]);
    const foreign = spine.api.as(await spine.api.createForeignKey());
    const ids = [appId, DELIVERY_ID, "main", "req-of-the-proxy", ...Object.values(made)];
    for (const id of [...ids, `${made.topic}/${made.entryId}`]) expect(await lookUp(id, foreign)).toEqual([]);
  });
});
