import { beforeAll, describe, expect, it } from "vitest";
import { insertDeadLetter } from "../../../src/data/subscriptions/dead-letters.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);
const APPS = 4;

interface Installed {
  readonly id: string;
  readonly channels: readonly { readonly id: string; readonly uid: string }[];
}
const apps: Installed[] = [];
/** API key with only the permissions of these lists. */
let reader = "";
const subscriptions: string[] = [];

// biome-ignore lint/suspicious/noExplicitAny: entities of four lists
type Entity = any;

/** Reads a page, and returns its items with the headers for paging. */
async function readPage(path: string, token = reader) {
  const response = await spine.api.app.request(`/v1${path}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(response.status).toBe(200);
  return {
    items: (await response.json()) as Entity[],
    total: Number(response.headers.get("x-total-count")),
    next: response.headers.get("x-next-cursor"),
  };
}

/** Reads all pages of two items. */
async function readAll(path: string): Promise<readonly Entity[]> {
  const items: Entity[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page = await readPage(`${path}?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
    expect(page.items.length).toBeGreaterThan(0);
    items.push(...page.items);
    cursor = page.next;
  }
  return items;
}

beforeAll(async () => {
  const { db } = spine.api.database;
  reader = await spine.api.keyWith("apps.read", "deliveries.read");
  for (let n = 0; n < APPS; n++) {
    const app: Installed = await spine.install(
      {
        uid: "main",
        kind: "webhook",
        config: {},
        events: [{ type: "push", typePath: "$.type", idPath: "$.id" }],
      },
      {
        uid: "list",
        kind: "sse",
        config: { url: "https://example.com/stream" },
        events: [{ type: "item", idPath: "$.id" }],
      },
    );
    apps.push(app);
    const main = app.channels.find(({ uid }) => uid === "main")?.id ?? "";
    await until(async () => {
      await spine.deliver(main, { type: "push", id: `sent-${n}` });
      await spine.path.recorder.flush();
      return (await spine.api.call.get(`/apps/${app.id}/deliveries`)).length > 0;
    });
    await spine.send(main, { type: "push", note: n });
    const { id: subscriptionId } = await spine.api.call.post(`/apps/${app.id}/events/subscribe`, {
      eventUid: "main:*",
      handler: { url: "https://handler.example/" },
    });
    subscriptions.push(subscriptionId);
    const topics: Entity[] = await spine.api.call.get(`/apps/${app.id}/topics`);
    const topic = topics.find(({ channelUid }) => channelUid === "main").topic;
    const letter = {
      subscriptionId,
      topic,
      type: "push",
      fields: ["id", `${n}`],
      attempts: [],
      reason: "HTTP 500",
    };
    // Two dead letters have the same time.
    for (const entryId of ["1-0", "2-0"])
      await insertDeadLetter(db, { ...letter, entryId }, 1_700_000_000_000 + n);
  }
  // A record that is written later would change the list between two pages.
  await spine.path.recorder.flush();
});

const LISTS = [
  { path: "/deliveries", perApp: undefined, timeOf: ({ receivedAt }: Entity) => receivedAt },
  { path: "/quarantine", perApp: 1, timeOf: ({ firstAt }: Entity) => firstAt },
  { path: "/dead-letters", perApp: 2, timeOf: ({ createdAt }: Entity) => createdAt },
  { path: "/sources", perApp: 1, timeOf: () => "" },
] as const;

describe.each(LISTS)("the list $path of all apps", ({ path, perApp, timeOf }) => {
  it("has the items of every app, newest first, in pages without gaps or duplicates", async () => {
    const { items, total, next } = await readPage(`${path}?limit=200`);
    expect(next).toBeNull();
    expect(total).toBe(items.length);
    if (perApp !== undefined) expect(items).toHaveLength(APPS * perApp);
    expect(new Set(items.map(({ appId }) => appId))).toEqual(new Set(apps.map(({ id }) => id)));
    const times = items.map(timeOf);
    expect(times).toEqual(times.toSorted().reverse());
    expect(await readAll(path)).toEqual(items);
  });

  it("can be filtered by app and by channel, and unknown ones have no items", async () => {
    const [one] = apps;
    const uid = path === "/sources" ? "list" : "main";
    const all = await readPage(path);
    const ofApp = await readPage(`${path}?appId=${one?.id}`);
    expect(ofApp.items).toEqual(all.items.filter(({ appId }) => appId === one?.id));
    expect(ofApp.total).toBe(ofApp.items.length);
    expect((await readPage(`${path}?channel=${uid}`)).items).toEqual(all.items);
    expect((await readPage(`${path}?channel=${uid}&appId=${one?.id}`)).items).toEqual(ofApp.items);
    for (const query of ["appId=app_none", "channel=none"])
      expect(await readPage(`${path}?${query}`)).toEqual({ items: [], total: 0, next: null });
  });

  it("is empty for another organization, and rejects a caller without permission", async () => {
    const foreign = await spine.api.createForeignKey();
    expect(await readPage(path, foreign)).toEqual({ items: [], total: 0, next: null });
    expect(await readPage(`${path}?appId=${apps[0]?.id}`, foreign)).toMatchObject({ items: [] });
    const other = spine.api.as(await spine.api.keyWith("problems.read"));
    expect(await other.expectRejection("GET", path)).toMatchObject({ status: 403 });
  });

  it("rejects a malformed cursor", async () => {
    for (const cursor of ["nonsense", "9999999999999999.dl_1", "99999999999999999.dl_1"])
      expect(await spine.api.call.expectRejection("GET", `${path}?cursor=${cursor}`)).toMatchObject({
        status: 400,
        paths: ["cursor"],
      });
  });
});

it("the lists of all apps have the filters of the lists of one app", async () => {
  const [first] = (await readPage("/deliveries")).items;
  const ids = async (query: string) => (await readPage(query)).items.map(({ id }) => id);
  expect(await ids(`/deliveries?requestId=${first.requestId}&status=${first.status}`)).toEqual([first.id]);
  expect(await ids("/deliveries?status=refused")).toEqual([]);
  const { items } = await readPage("/deliveries?eventId=sent-1");
  expect(items.flatMap(({ appId, events }) => [appId, events[0].id])).toEqual([apps[1]?.id, "sent-1"]);
  const [sent] = items;
  expect(await ids(`/deliveries?eventId=sent-1&cursor=${Date.parse(sent.receivedAt)}.${sent.id}`)).toEqual(
    [],
  );
  expect(await ids("/deliveries?to=2020-01-01T00:00:00Z")).toEqual([]);
  expect(await ids("/quarantine?reason=id_missing")).toHaveLength(APPS);
  expect(await ids("/quarantine?reason=no_match")).toEqual([]);
  expect(await ids("/quarantine?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z")).toEqual([]);
  expect(await ids(`/dead-letters?subscriptionId=${subscriptions[1]}`)).toHaveLength(2);
  expect(await ids("/dead-letters?type=other")).toEqual([]);
  expect(await ids("/dead-letters?from=2030-01-01T00:00:00Z")).toEqual([]);
});
