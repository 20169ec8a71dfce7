import { beforeAll, describe, expect, it } from "vitest";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);
const APPS = 3;

// biome-ignore lint/suspicious/noExplicitAny: entities of the API
type Entity = any;
const apps: Entity[] = [];
let reader = "";

async function readPage(query = "", token = reader) {
  const response = await spine.api.app.request(`/v1/events${query}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(response.status).toBe(200);
  return {
    items: (await response.json()) as Entity[],
    total: Number(response.headers.get("x-total-count")),
    next: response.headers.get("x-next-cursor"),
    scanned: Number(response.headers.get("x-scanned-count")),
  };
}

const idsOf = async (query: string) => (await readPage(query)).items.map(({ id }) => id);
const topicOf = (app: Entity, type: string) =>
  `events.${app.organizationId}.apps.app.event_received.${app.id}.main.${type}`;

beforeAll(async () => {
  reader = await spine.api.keyWith("apps.read");
  const types = ["push", "pull"];
  for (let n = 0; n < APPS; n++) {
    const events = types.map((type) => ({ type, typePath: "$.type", idPath: "$.id" }));
    const app = await spine.install({ uid: "main", kind: "webhook", config: {}, events });
    apps.push(app);
  }
  for (let n = 0; n < 12; n++) {
    const app = apps[n % APPS];
    const type = types[n % 2] ?? "";
    await spine.send(app.channels[0].id, { type, id: `sent-${n}`, order: { total: n } });
    // Events of one millisecond on several topics are listed by topic, so the next event waits for the next millisecond.
    const sentAtMs = Date.now();
    await until(() => Date.now() > sentAtMs);
  }
  // Entries of several topics with the same entry id.
  const entryId = `${Date.now() + 60_000}-0`;
  const attributes = Object.entries({ specversion: "1.0", source: "/test", type: "push" }).flat();
  for (const app of apps)
    await spine.server.client.xadd(topicOf(app, "push"), entryId, ...attributes, "id", `tie-${app.id}`);
});

describe("the list of the events of all apps", () => {
  it("has the events of every app, newest first, in pages without gaps or duplicates", async () => {
    const { items, total, next } = await readPage();
    expect(next).toBeNull();
    expect(total).toBe(12 + APPS);
    expect(items).toHaveLength(12 + APPS);
    const tied = apps
      .map(({ id }) => `tie-${id}`)
      .toSorted()
      .reverse();
    const sent = Array.from({ length: 12 }, (_, n) => `sent-${11 - n}`);
    expect(items.map(({ id }) => id)).toEqual([...tied, ...sent]);
    for (const limit of [1, 2, 7]) {
      const paged: Entity[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page = await readPage(`?limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`);
        expect(page.total).toBe(total);
        expect(page.items.length).toBeGreaterThan(0);
        paged.push(...page.items);
        cursor = page.next;
      }
      expect(paged).toEqual(items);
    }
  });

  it("can be filtered by app, channel uid or id, type, id, time and a field of the data", async () => {
    const [app, other] = apps;
    expect(await idsOf(`?appId=${app.id}`)).toEqual([
      `tie-${app.id}`,
      "sent-9",
      "sent-6",
      "sent-3",
      "sent-0",
    ]);
    expect(await idsOf(`?channel=${other.channels[0].id}&type=pull`)).toEqual(["sent-7", "sent-1"]);
    expect(await idsOf("?channel=main")).toEqual(await idsOf(""));
    expect(await idsOf("?id=sent-4")).toEqual(["sent-4"]);
    const [event] = (await readPage("?id=sent-4")).items;
    expect(await idsOf(`?id=${event.entryId}&appId=${other.id}`)).toEqual(["sent-4"]);
    expect(await idsOf("?path=$.order.total&value=7")).toEqual(["sent-7"]);
    expect(await idsOf(`?to=${new Date(Date.now() + 30_000).toISOString()}&limit=1`)).toEqual(["sent-11"]);
    expect(await idsOf("?to=1960-01-01T00:00:00Z")).toEqual([]);
    for (const query of ["appId=app_none", "channel=none", "type=none"])
      expect(await readPage(`?${query}`)).toEqual({ items: [], total: 0, next: null, scanned: 0 });
  });

  it("skips up to 10,000 events after a cursor, and counts the events that it has skipped or read", async () => {
    const { items, total } = await readPage();
    const skipping = await readPage("?limit=2&offset=4");
    expect(skipping).toMatchObject({ items: items.slice(4, 6), total, scanned: 6 });
    const further = await readPage(`?limit=2&offset=3&cursor=${skipping.next}`);
    expect(further).toMatchObject({ items: items.slice(9, 11), scanned: 5 });
    expect(await readPage(`?offset=10000&cursor=${further.next}`)).toEqual({
      items: [],
      total,
      next: null,
      scanned: total - 11,
    });
    for (const query of ["offset=10001", "offset=1&id=sent-4", "offset=1&path=$.order"])
      expect(await spine.api.call.expectRejection("GET", `/events?${query}`)).toMatchObject({
        status: 400,
        paths: ["offset"],
      });
  });

  it("counts all events that a search has read, not only the matches", async () => {
    const { total } = await readPage();
    expect(await readPage("?path=$.order.total&value=7")).toMatchObject({
      items: [{ id: "sent-7" }],
      scanned: total,
    });
    const part = await readPage("?path=$.order.total&limit=1");
    expect(part).toMatchObject({ items: [{ id: "sent-11" }], scanned: APPS + 1 });
    expect((await readPage(`?path=$.order.total&cursor=${part.next}`)).scanned).toBe(total - APPS - 1);
  });

  it("stays within its time range if the cursor is of a list without one", async () => {
    const [event] = (await readPage("?id=sent-4")).items;
    const { next } = await readPage("?limit=1");
    const to = new Date(Number.parseInt(event.entryId, 10)).toISOString();
    const expected = await idsOf(`?to=${to}`);
    expect(expected).not.toContain("sent-11");
    expect(await idsOf(`?to=${to}&cursor=${next}`)).toEqual(expected);
  });

  it("is empty for another organization, and rejects a caller without permission", async () => {
    const foreign = await spine.api.createForeignKey();
    for (const query of ["", `?appId=${apps[0].id}`, `?channel=${apps[0].channels[0].id}`])
      expect(await readPage(query, foreign)).toEqual({ items: [], total: 0, next: null, scanned: 0 });
    const { next } = await readPage("?limit=1");
    expect(await readPage(`?cursor=${next}`, foreign)).toMatchObject({ items: [] });
    const caller = spine.api.as(await spine.api.keyWith("deliveries.read"));
    expect(await caller.expectRejection("GET", "/events")).toMatchObject({ status: 403 });
  });

  it("leaves out the topics of a deleted app", async () => {
    const app = await spine.install({
      uid: "main",
      kind: "webhook",
      config: {},
      events: [{ type: "gone", typePath: "$.type" }],
    });
    await spine.send(app.channels[0].id, { type: "gone" });
    expect((await readPage("?type=gone")).total).toBe(1);
    await spine.api.call.delete(`/apps/${app.id}`);
    expect((await readPage("?type=gone")).total).toBe(0);
  });

  it("rejects a malformed cursor, and a value without a path", async () => {
    for (const cursor of ["nonsense", "1.abc", "18446744073709551616-0.abc", "1769851800000.dl_1"])
      expect(await spine.api.call.expectRejection("GET", `/events?cursor=${cursor}`)).toMatchObject({
        status: 400,
        paths: ["cursor"],
      });
    expect(await spine.api.call.expectRejection("GET", "/events?value=1")).toMatchObject({
      status: 400,
      paths: ["path"],
    });
  });
});
