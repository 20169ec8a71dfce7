import { describe, expect, it } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { findMissedDeliveries } from "../../../src/maintenance/problems/missed-checks.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { openedAnswers } from "./poll-support.ts";
import { givenReconciled, type ProviderItem, type ReconcileInput, secondsAgo } from "./reconcile-support.ts";

const spine = opened(() => startTestSpine());
const server = openedAnswers();
const given = (input?: ReconcileInput) => givenReconciled(spine, server, input);

/** Items of which each is a second younger than the one before. */
const itemsOf = (ids: readonly string[], oldestSeconds = 1000): ProviderItem[] =>
  ids.map((id, index) => ({ id, at: secondsAgo(oldestSeconds - index) }));

/** A source whose comparison has succeeded: the webhook received `seed`, and the provider lists it. */
async function givenProven(input?: ReconcileInput) {
  const rig = await given(input);
  const seed = { id: "seed", at: secondsAgo(2000) };
  await rig.send(seed);
  rig.list([seed]);
  await rig.pollAll();
  return { ...rig, list: (items: readonly ProviderItem[]) => rig.list([seed, ...items]) };
}

describe("a poll that reconciles a webhook channel", () => {
  it("publishes each missed event once on the webhook's topic, and none that the webhook received", async () => {
    const rig = await givenProven();
    const items = itemsOf(["a", "b", "c"]);
    await rig.send(items[1]);
    rig.list(items);
    expect(await rig.pollAll()).toMatchObject({ kind: "done" });
    expect(await rig.ids()).toEqual(["seed", "b", "a", "c"]);
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["seed", "b", "a", "c"]);
    const [, received, recovered] = await rig.events();
    expect(received).not.toHaveProperty("inletvia");
    expect(recovered).toMatchObject({
      inletvia: "poll",
      source: `/apps/${rig.app.id}/channels/hook`,
      data: JSON.stringify(items[0]),
    });
  });

  it("makes a webhook that arrives later a duplicate", async () => {
    const rig = await givenProven();
    const [item] = itemsOf(["a"]);
    rig.list(item ? [item] : []);
    await rig.pollAll();
    expect(await rig.send(item)).toMatchObject({ published: 0, duplicates: 1 });
    expect(await rig.ids()).toEqual(["seed", "a"]);
  });

  it("shows its findings, and adds up the missed deliveries of a day", async () => {
    const rig = await givenProven();
    const items = itemsOf(["a", "b", "c"]);
    await rig.send(items[0]);
    rig.list(items);
    await rig.pollAll();
    expect(await rig.state()).toMatchObject({
      lastReconcile: { items: 3, known: 1, recovered: 2, listed: 0, failed: 0 },
      missed: {
        count: 2,
        oldestMs: Date.parse(items[1]?.at ?? ""),
        newestMs: Date.parse(items[2]?.at ?? ""),
      },
    });
    const later = itemsOf(["d"], 500);
    rig.list([...items, ...later]);
    await rig.pollAll();
    expect(await rig.state()).toMatchObject({
      lastReconcile: { items: 1, known: 0, recovered: 1 },
      missed: {
        count: 3,
        oldestMs: Date.parse(items[1]?.at ?? ""),
        newestMs: Date.parse(later[0]?.at ?? ""),
      },
    });
    expect(rig.seen).toContainEqual(expect.objectContaining({ kind: "missed", recovered: 2 }));
  });

  it("leaves out items that match no definition of the webhook channel", async () => {
    const rig = await givenProven({
      webhook: { events: [{ type: "e", typePath: "$.type", idPath: "$.id" }] },
    });
    rig.list([
      { id: "a", type: "other", at: secondsAgo(900) },
      { id: "b", type: "e", at: secondsAgo(800) },
    ]);
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["b"]);
    expect(await rig.quarantine()).toEqual([expect.objectContaining({ reason: "no_match" })]);
  });

  it("counts items that a `when` of the webhook channel excludes as neither missed nor recovered", async () => {
    const when = { properties: { item: { properties: { type: { const: "e" } } } } };
    const rig = await givenProven({ webhook: { events: [{ type: "e", idPath: "$.id", when }] } });
    rig.list([
      { id: "a", type: "other", at: secondsAgo(900) },
      { id: "b", type: "e", at: secondsAgo(800) },
    ]);
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["seed", "b"]);
    expect(await rig.quarantine()).toEqual([]);
    const state = await rig.state();
    expect(state.lastReconcile).toMatchObject({ items: 2, known: 0, recovered: 1, listed: 0, failed: 0 });
    expect(state.missed).toMatchObject({ count: 1 });
  });

  it("quarantines items that the webhook channel cannot read", async () => {
    const rig = await givenProven();
    rig.list([{ id: "", at: secondsAgo(900) }, ...itemsOf(["b"])]);
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["seed", "b"]);
    expect(await rig.quarantine()).toMatchObject([{ channelUid: "hook", reason: "id_missing" }]);
    expect((await rig.state()).lastReconcile).toMatchObject({ items: 2, recovered: 1, failed: 1 });
  });
});

describe("the counts and records of a webhook channel that a poll reconciles", () => {
  const read = async (name: string): Promise<number> => {
    const metric = await spine.metrics.registry.getSingleMetric(name)?.get();
    return (metric?.values ?? [])
      .filter(({ labels }) => labels.kind === "webhook" && labels.result !== "listed")
      .filter(({ labels }) => labels.status === undefined || labels.status === "recovered")
      .reduce((sum, { value }) => sum + value, 0);
  };

  it("contain missed deliveries, and not those that the webhook delivered", async () => {
    const rig = await givenProven();
    const items = itemsOf(["a", "b", "c"]);
    await rig.send(items[0]);
    const names = ["inlet_deliveries_total", "inlet_deliveries_missed_total", "inlet_events_total"];
    const before = await Promise.all(names.map(read));
    rig.list(items);
    await rig.pollAll();
    const after = await Promise.all(names.map(read));
    expect(after.map((value, index) => value - (before[index] ?? 0))).toEqual([0, 2, 2]);
    await spine.path.recorder.flush();
    const records = await spine.api.call.get(`${rig.appPath}/deliveries?status=recovered`);
    expect(records).toMatchObject([
      { channelUid: "hook", published: 1, verification: { result: "fetched" } },
    ]);
  });
});

describe("a source that reconciles", () => {
  it("runs while a subscription covers the webhook channel", async () => {
    const rig = await given({ config: { run: "subscribed" } });
    const isWanted = async () => (await spine.path.findSource(rig.numberOf("poll"))) !== undefined;
    expect(await isWanted()).toBe(false);
    await spine.api.call.post(`${rig.appPath}/events/subscribe`, { eventUid: "hook:e" });
    expect(await isWanted()).toBe(true);
    expect((await rig.source()).state).toBe("waiting");
  });
});

describe("the delivery that a poll builds from an item", () => {
  it("has the headers, query parameters and body that `as` describes", async () => {
    const rig = await given({
      webhook: {
        events: [
          {
            type: "e",
            typePath: "$headers['x-event']",
            idPath: "$headers['x-id']",
            payloadPath: "$.payload",
          },
        ],
      },
      config: {
        as: {
          headers: { "X-Event": "e", "X-Id": "$.guid" },
          query: { from: "$.from" },
          body: { payload: { big: "$.big", list: ["$.id", 1, "text"] }, absent: "$.absent" },
        },
      },
    });
    server.answers = [
      (_, response) =>
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(`{"items":[{"id":"a","guid":12345678901234567890,"big":1.00,"at":"${secondsAgo(900)}"}]}`),
    ];
    await rig.pollAll();
    expect(await rig.events()).toMatchObject([
      { id: "12345678901234567890", data: '{"big":1.00,"list":["a",1,"text"]}' },
    ]);
  });
});

describe("an item that is younger than `settleSeconds`", () => {
  it("is neither published nor passed by the cursor until it is old enough", async () => {
    const rig = await givenProven();
    const items = [...itemsOf(["a"]), { id: "young", at: secondsAgo(200) }];
    rig.list(items);
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["seed", "a"]);
    expect((await rig.source()).cursor.value).toEqual({ timestamp: items[0]?.at });
    rig.pass(150);
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["seed", "a", "young"]);
    expect((await rig.source()).cursor.value).toEqual({ timestamp: items[1]?.at });
  });

  it("is in the period that the next request asks for with {{lastPollAt}}", async () => {
    const rig = await givenProven({
      config: { request: { url: `${server.origin}/items`, query: { since: "{{lastPollAt}}" } } },
    });
    rig.list([{ id: "young", at: secondsAgo(200) }]);
    await rig.pollAll();
    await rig.pollAll();
    const since = new URL(server.requests.at(-1)?.url ?? "", server.origin).searchParams.get("since") ?? "";
    expect(Date.parse(since)).toBeLessThanOrEqual(Date.now() - 300_000);
  });

  it("is seen again although the list has not changed since", async () => {
    const rig = await givenProven({ config: { conditional: true } });
    const items = [...itemsOf(["a"]), { id: "young", at: secondsAgo(200) }];
    server.answers = [
      (request, response) => {
        if (request.headers["if-none-match"] === '"1"') response.writeHead(304).end();
        else
          response
            .writeHead(200, { "content-type": "application/json", etag: '"1"' })
            .end(JSON.stringify({ items }));
      },
    ];
    await rig.pollAll();
    rig.pass(150);
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["seed", "a", "young"]);
    await rig.pollAll();
    expect(server.requests.at(-1)?.headers["if-none-match"]).toBe('"1"');
  });
});

describe("`match`", () => {
  const other = (item: ProviderItem | undefined) => ({ ...item, attempt: 1 });

  it("by default reports an item with a known id and other data as a conflict", async () => {
    const rig = await givenProven();
    const items = itemsOf(["a"]);
    await rig.send(other(items[0]));
    rig.list(items);
    await rig.pollAll();
    expect(await rig.quarantine()).toMatchObject([{ reason: "id_conflict", channelUid: "hook" }]);
    expect(await rig.ids()).toEqual(["seed", "a"]);
  });

  it("`id` compares ids alone, whichever of the webhook and the poll comes first", async () => {
    const rig = await givenProven({ config: { match: "id" } });
    const items = itemsOf(["a", "b"]);
    await rig.send(other(items[0]));
    rig.list(items);
    await rig.pollAll();
    expect(await rig.send(other(items[1]))).toMatchObject({ duplicates: 1, quarantined: 0 });
    expect(await rig.ids()).toEqual(["seed", "a", "b"]);
    expect(await rig.quarantine()).toEqual([]);
    // Two deliveries of the webhook are still compared by their data.
    expect(await rig.send({ ...items[0], attempt: 2 })).toMatchObject({ quarantined: 1 });
  });
});

describe("the first poll", () => {
  it("only compares, and the next one publishes the missed events", async () => {
    const rig = await given();
    const items = itemsOf(["a", "b"]);
    await rig.send(items[0]);
    rig.list(items);
    await rig.poll();
    expect(await rig.ids()).toEqual(["a"]);
    expect((await rig.state()).missed).toBeUndefined();
    await rig.poll();
    expect(await rig.ids()).toEqual(["a", "b"]);
  });

  it("publishes nothing if the webhook received events in that time and no item has the id of one", async () => {
    const rig = await given({
      webhook: { events: [{ type: "e", idPath: "$headers['x-id']" }] },
      config: { settleSeconds: 0, as: { headers: { "x-id": "$.wrong" } } },
    });
    const items = itemsOf(["a", "b"], 320).map((item) => ({ ...item, wrong: `other ${item.id}` }));
    for (const item of items) await rig.send(item, { "x-id": item.id });
    rig.list(items);
    for (let polls = 0; polls < 2; polls++) {
      expect(await rig.pollAll()).toMatchObject({ kind: "failed", code: "reconcile_mismatch" });
    }
    expect(await rig.ids()).toEqual(["a", "b"]);
    expect((await rig.source()).lastError).toMatchObject({ code: "reconcile_mismatch" });
    const as = { headers: { "x-id": "$.id" } };
    await spine.api.call.put(`${rig.appPath}/channels/poll`, { config: { as } });
    const more = [...items, { id: "c", at: secondsAgo(310) }];
    rig.list(more);
    expect(await rig.pollAll()).toMatchObject({ kind: "done" });
    expect(await rig.ids()).toEqual(["a", "b", "c"]);
  });

  it("compares all pages before it concludes that the ids are wrong", async () => {
    const rig = await given({
      config: { pagination: { by: "linkHeader" } },
    });
    const items = itemsOf(["missed", "received"], 320);
    await rig.send(items[1]);
    const page = (n: number) => JSON.stringify({ items: items.slice(n, n + 1) });
    server.answers = [
      (request, response) => {
        const isSecond = request.url?.includes("page=2") === true;
        const link = isSecond ? {} : { link: `<${server.origin}/items?page=2>; rel="next"` };
        response.writeHead(200, { "content-type": "application/json", ...link }).end(page(isSecond ? 1 : 0));
      },
    ];
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["received", "missed"]);
  });

  it("lets missed events be published if the webhook received none, but compares again once it does", async () => {
    const rig = await given({
      webhook: { events: [{ type: "e", idPath: "$headers['x-id']" }] },
      config: { settleSeconds: 0, as: { headers: { "x-id": "$.wrong" } } },
    });
    const itemOf = (id: string, seconds: number) => ({ id, wrong: `other ${id}`, at: secondsAgo(seconds) });
    const a = itemOf("a", 900);
    rig.list([a]);
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["other a"]);
    const b = itemOf("b", 310);
    await rig.send(b, { "x-id": "b" });
    rig.list([a, b]);
    expect(await rig.pollAll()).toMatchObject({ kind: "failed", code: "reconcile_mismatch" });
    expect(await rig.ids()).toEqual(["other a", "b"]);
  });
});

describe("a poll that compares ids", () => {
  const WRONG = { settleSeconds: 0, as: { headers: { "x-id": "$.wrong" } } };
  const itemOf = (id: string) => ({ id, wrong: `other ${id}`, at: secondsAgo(0) });

  it("waits if the items of all received events are younger than `settleSeconds`, and then continues", async () => {
    const rig = await given();
    const items = [...itemsOf(["missed"], 350), { id: "received", at: secondsAgo(200) }];
    await rig.send(items[1]);
    rig.list(items);
    expect(await rig.pollAll()).toEqual({ kind: "done" });
    expect(await rig.ids()).toEqual(["received"]);
    rig.pass(150);
    await rig.pollAll();
    expect((await rig.ids()).toSorted()).toEqual(["missed", "received"]);
  });

  it("compares again after a change of the webhook channel that can change the ids", async () => {
    const rig = await givenProven({ config: WRONG });
    await spine.api.call.put(`${rig.appPath}/channels/hook`, {
      events: [{ type: "e", idPath: "$headers['x-id']" }],
    });
    const items = [itemOf("a"), itemOf("b")];
    for (const item of items) await rig.send(item, { "x-id": item.id });
    rig.list(items);
    expect(await rig.pollAll()).toMatchObject({ kind: "failed", code: "reconcile_mismatch" });
    expect(await rig.ids()).toEqual(["seed", "a", "b"]);
  });

  it("compares again after the webhook channel was created again", async () => {
    const rig = await givenProven({ config: WRONG });
    await spine.api.call("DELETE", `${rig.appPath}/channels/hook`);
    const events = [{ type: "e", idPath: "$headers['x-id']" }];
    const hook = await spine.api.call.post(`${rig.appPath}/channels`, {
      uid: "hook",
      kind: "webhook",
      events,
    });
    const item = itemOf("a");
    await spine.send(hook.id, item, { "x-id": "a" });
    rig.list([item]);
    expect(await rig.pollAll()).toMatchObject({ kind: "failed", code: "reconcile_mismatch" });
    expect(await rig.ids()).toEqual(["seed", "a"]);
  });
});

describe("an item that is older than the dedupe window of the webhook channel", () => {
  it("is listed instead of published, and published when a person redrives it", async () => {
    const rig = await givenProven({
      webhook: { events: [{ type: "e", idPath: "$.id" }], config: { dedupe: { windowSeconds: 3600 } } },
      config: { match: "id" },
    });
    rig.list([...itemsOf(["old"], 4000), ...itemsOf(["a"])]);
    // The seed is younger than the old item, so the cursor is set back.
    await spine.api.call.put(`${rig.appPath}/channels/poll/source/cursor`, {
      value: { timestamp: secondsAgo(5000) },
    });
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["seed", "a"]);
    const listed = await rig.quarantine();
    expect(listed).toMatchObject([{ reason: "window_passed", channelUid: "hook", definitions: ["e"] }]);
    expect(await rig.state()).toMatchObject({ missed: { count: 2 }, lastReconcile: { listed: 1 } });
    const redriven = await spine.api.call.post(`${rig.appPath}/quarantine/${listed[0].id}/redrive`, {});
    expect(redriven).toMatchObject({ status: "released", events: [{ id: "old", status: "recovered" }] });
    expect(await rig.send({ id: "old", other: "data" })).toMatchObject({ duplicates: 1 });
    expect((await rig.events()).at(-1)).toMatchObject({ id: "old", inletvia: "poll" });
  });
});

describe("an item that leaves the dedupe window within five minutes", () => {
  it("is listed too, because its id could be forgotten before the write", async () => {
    const rig = await givenProven({
      webhook: { events: [{ type: "e", idPath: "$.id" }], config: { dedupe: { windowSeconds: 3600 } } },
    });
    rig.list([...itemsOf(["edge"], 3400), ...itemsOf(["a"], 3200)]);
    await spine.api.call.put(`${rig.appPath}/channels/poll/source/cursor`, {
      value: { timestamp: secondsAgo(5000) },
    });
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["seed", "a"]);
    expect(await rig.quarantine()).toMatchObject([{ reason: "window_passed" }]);
  });
});

describe("an item from before a change of the webhook channel's deduplication", () => {
  const change = (rig: Awaited<ReturnType<typeof given>>, content: object) =>
    spine.api.call.put(`${rig.appPath}/channels/hook`, content);
  const idOf = ({ detail }: { detail: string }) => /"(.*?)"/.exec(detail)?.[1];
  const listed = async (rig: Awaited<ReturnType<typeof given>>) => (await rig.quarantine()).map(idOf);

  it("is listed if its id may be forgotten because the window was shorter", async () => {
    const rig = await given({
      webhook: { events: [{ type: "e", idPath: "$.id" }], config: { dedupe: { windowSeconds: 600 } } },
    });
    await change(rig, { config: { dedupe: { windowSeconds: 86_400 } } });
    rig.list([...itemsOf(["forgotten"], 1_000), ...itemsOf(["a"], 400)]);
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["a"]);
    expect(await listed(rig)).toEqual(["forgotten"]);
  });

  it("is listed if ids were read in another way", async () => {
    const rig = await given();
    await change(rig, { events: [{ type: "e", idPath: "$.at" }] });
    rig.list(itemsOf(["a"], 400));
    await rig.pollAll();
    expect(await rig.ids()).toEqual([]);
    expect(await rig.quarantine()).toMatchObject([{ reason: "window_passed" }]);
  });

  it("is published after other changes", async () => {
    const rig = await given();
    await change(rig, {
      title: "Hook",
      config: { dedupe: { windowSeconds: 80_000, onConflict: "duplicate" } },
    });
    rig.list(itemsOf(["a"], 400));
    await rig.pollAll();
    expect(await rig.ids()).toEqual(["a"]);
  });
});

describe("a list that contains only items from before the dedupe window", () => {
  it("is listed completely, although it cannot be compared", async () => {
    const rig = await given({
      webhook: { events: [{ type: "e", idPath: "$.id" }], config: { dedupe: { windowSeconds: 3600 } } },
      config: { pagination: { by: "linkHeader" } },
    });
    const items = itemsOf(["old1", "old2"], 4000);
    server.answers = [
      (request, response) => {
        const isLast = request.url?.includes("page=2") === true;
        const link = isLast ? {} : { link: `<${server.origin}/items?page=2>; rel="next"` };
        response
          .writeHead(200, { "content-type": "application/json", ...link })
          .end(JSON.stringify({ items: isLast ? [] : items }));
      },
    ];
    await rig.pollAll();
    expect(await rig.ids()).toEqual([]);
    const details = (await rig.quarantine()).map(({ detail }: { detail: string }) => detail);
    expect(details.toSorted()).toEqual([expect.stringContaining("old1"), expect.stringContaining("old2")]);
  });
});

describe("the API of a source that reconciles", () => {
  const WINDOW = { events: [{ type: "e", idPath: "$.id" }], config: { dedupe: { windowSeconds: 3600 } } };

  async function givenListed() {
    const rig = await givenProven({ webhook: WINDOW });
    rig.list([...itemsOf(["old1", "old2"], 4000), ...itemsOf(["a"])]);
    await spine.api.call.put(`${rig.appPath}/channels/poll/source/cursor`, {
      value: { timestamp: secondsAgo(5000) },
    });
    await rig.pollAll();
    const recover = (body: object) =>
      spine.api.call("POST", `${rig.appPath}/channels/poll/source/recover`, body);
    return { ...rig, recover };
  }

  it("shows the last comparison and the missed deliveries of a day", async () => {
    const rig = await givenListed();
    const { reconcile } = await rig.source();
    expect(reconcile).toMatchObject({
      channelUid: "hook",
      last: { items: 4, known: 1, recovered: 1, listed: 2, failed: 0 },
      missed: { count: 3 },
    });
    expect(Date.parse(reconcile.missed.oldest)).toBeLessThan(Date.parse(reconcile.missed.newest));
  });

  it("publishes listed items when a person asks for it, once", async () => {
    const rig = await givenListed();
    const [first, second] = await rig.quarantine();
    const one = await rig.recover({ ids: [second.id] });
    expect(one.body).toMatchObject([
      { id: second.id, status: "released", events: [{ status: "recovered" }] },
    ]);
    const rest = await rig.recover({});
    expect(rest.body).toMatchObject([{ id: first.id, status: "released" }]);
    expect((await rig.recover({})).body).toEqual([]);
    expect((await rig.ids()).toSorted()).toEqual(["a", "old1", "old2", "seed"]);
    const again = await rig.recover({ ids: [first.id] });
    expect([again.status, again.body.details]).toMatchObject([400, [{ path: "ids[0]" }]]);
  });

  it("publishes only items that it has listed", async () => {
    const rig = await givenListed();
    await rig.send({ id: "" });
    const [kept] = (await rig.quarantine()).filter(
      ({ reason }: { reason: string }) => reason === "id_missing",
    );
    expect((await rig.recover({ ids: [kept.id] })).status).toBe(400);
    const hook = `${rig.appPath}/channels/hook/source/recover`;
    expect((await spine.api.call("POST", hook, {})).status).toBe(409);
  });

  it("shows in a dry run which items are duplicates of received events", async () => {
    const rig = await givenProven();
    const items = itemsOf(["a", "b"]);
    await rig.send(items[0]);
    rig.list(items);
    const dry = await rig.dryRun();
    expect(dry.items.map(({ events }) => events[0])).toMatchObject([
      { id: "a", status: "duplicate" },
      { id: "b", status: "new", event: { inletvia: "poll" } },
    ]);
    expect(await rig.ids()).toEqual(["seed", "a"]);
  });

  it("shows in a dry run which items are too old to be published", async () => {
    const rig = await given({ webhook: WINDOW });
    rig.list([...itemsOf(["old"], 4000), ...itemsOf(["a"])]);
    const { items } = await rig.dryRun();
    expect(items).toMatchObject([
      { events: [], failures: [{ reason: "window_passed" }] },
      { events: [{ id: "a", status: "new" }], failures: [] },
    ]);
  });
});

describe("the problems of a webhook channel that a poll reconciles", () => {
  const find = async (rig: Pick<Awaited<ReturnType<typeof given>>, "app" | "deps">, nowMs = Date.now()) => {
    const { states } = rig.deps;
    const found = await findMissedDeliveries({ db: spine.api.database.db, states, clock: () => nowMs });
    return found.filter(({ about }) => about.app?.id === rig.app.id);
  };

  it("contain the missed deliveries of a day", async () => {
    const rig = await givenProven();
    expect(await find(rig)).toEqual([]);
    const items = itemsOf(["a", "b"]);
    rig.list(items);
    await rig.pollAll();
    const [oldestMs, newestMs] = items.map(({ at }) => Date.parse(at));
    expect(await find(rig)).toMatchObject([
      {
        kind: "deliveries_missed",
        severity: "warning",
        about: { channel: { uid: "hook" } },
        figures: { count: 2, oldestMs, newestMs },
      },
    ]);
    expect(await find(rig, Date.now() + 25 * 3_600_000)).toEqual([]);
  });

  it("contain wrong ids until a comparison succeeds", async () => {
    const rig = await given({ config: { settleSeconds: 0, as: { body: { id: "$.wrong" } } } });
    const [item] = itemsOf(["a"], 320);
    await rig.send(item);
    rig.list([{ id: "a", ...item, wrong: "b", at: item?.at ?? "" }]);
    await rig.pollAll();
    expect(await find(rig)).toMatchObject([
      { kind: "reconcile_mismatch", severity: "error", about: { channel: { uid: "poll" } } },
    ]);
    await spine.api.call.put(`${rig.appPath}/channels/poll`, { config: { as: { body: "$" } } });
    await rig.pollAll();
    expect(await find(rig)).toEqual([]);
  });
});

describe("a worker that ends during a poll", () => {
  it.each(["before the write", "after the write"] as const)("%s loses and repeats no event", async (when) => {
    const rig = await givenProven();
    const items = itemsOf(Array.from({ length: 40 }, (_, n) => `e${n}`));
    for (const item of items.filter((_, n) => n % 3 === 0)) await rig.send(item);
    rig.list(items);
    let writes = 0;
    const gather: typeof rig.deps.gather = (channel, deliveries) =>
      rig.deps.gather(channel, deliveries).map((gathered) => ({
        ...gathered,
        async write(options) {
          if (++writes === 1 && when === "before the write") throw new UnavailableError("killed");
          const written = await gathered.write(options);
          if (writes === 1) throw new UnavailableError("killed");
          return written;
        },
      }));
    await expect(rig.poll({ gather })).rejects.toThrow("killed");
    await rig.pollAll();
    expect((await rig.ids()).toSorted()).toEqual(["seed", ...items.map(({ id }) => id)].toSorted());
  });

  it("cannot write after another worker has taken over", async () => {
    const rig = await givenProven();
    rig.list(itemsOf(["a"]));
    const gather: typeof rig.deps.gather = (channel, deliveries) =>
      rig.deps.gather(channel, deliveries).map((gathered) => ({
        ...gathered,
        async write(options) {
          await rig.pollAll();
          return gathered.write(options);
        },
      }));
    await expect(rig.poll({ gather })).rejects.toMatchObject({ stale: "epoch" });
    expect(await rig.ids()).toEqual(["seed", "a"]);
  });

  it("is fenced on all topics of the webhook channel", async () => {
    const rig = await givenProven();
    await spine.api.call.put(`${rig.appPath}/channels/hook`, {
      events: [
        { type: "e", typePath: "$.type", idPath: "$.id" },
        { type: "added", typePath: "$.type", idPath: "$.id" },
      ],
    });
    await rig.pollAll();
    const epoch = await spine.server.client.hget(`inlet:{c.${rig.numberOf("poll")}}:cursor`, "e");
    for (const type of ["e", "added"]) {
      const topic = `events.${rig.app.organizationId}.apps.app.event_received.${rig.app.id}.hook.${type}`;
      const stamped = await spine.server.client.hget(`{${topic}}:e`, `s${rig.numberOf("poll")}`);
      expect([type, stamped]).toEqual([type, epoch]);
    }
  });
});

describe("while the webhook channel", () => {
  it("is paused, the poll compares no items and does not move the cursor", async () => {
    const rig = await givenProven();
    await spine.api.call.post(`${rig.appPath}/channels/hook/pause`, {});
    rig.list(itemsOf(["a"]));
    const before = await rig.cursor();
    expect(await rig.pollAll()).toEqual({ kind: "done" });
    expect(await rig.cursor()).toBe(before);
    expect(await rig.ids()).toEqual(["seed"]);
  });

  it("does not exist, the source reports it", async () => {
    const rig = await givenProven();
    await spine.api.call("DELETE", `${rig.appPath}/channels/hook`);
    expect(await rig.poll()).toMatchObject({ kind: "broken", code: "reconciles" });
  });
});
