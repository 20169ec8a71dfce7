import { expect, it } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { fieldsOn } from "../support/gateway.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { opened } from "../support/opened.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { until } from "../support/until.ts";

const upstream = opened(() => PollUpstream.start());
const gateway = givenGateway({ INLET_ALLOW_NETWORKS: "127.0.0.0/8" });
const channel = opened(() => {
  upstream.clear({ order: "descending", paging: "linkHeader" });
  for (let n = 0; n < 8; n++) {
    upstream.nowMs += 1000;
    upstream.insert();
  }
  const config = {
    run: "always",
    request: { url: `${upstream.origin}/rows`, query: { since: "{{cursor}}" } },
    schedule: { intervalSeconds: 5 },
    discriminator: { by: "timestamp", path: "$.at" },
    pagination: { by: "linkHeader" },
    order: "descending",
    itemsPath: "$.rows",
    itemId: "$.id",
    versionPath: "$.version",
    startAt: "earliest",
  };
  const events = [{ type: "1", typePath: "$.version" }];
  return givenChannel(gateway, { kind: "polling", config, events });
});

/** Returns the ids of the events of a type, in topic order. */
const onTopic = (type: string): Promise<readonly string[]> =>
  fieldsOn(gateway.stores, channel.topicOf(type), "id");

const idsUpTo = (last: number): string[] =>
  Array.from({ length: last }, (_, i) => `r${String(i + 1).padStart(5, "0")}/1`);

it("polling publishes rows once and oldest first, even if the server lists the newest first", async () => {
  await until(async () => (await onTopic("1")).length >= 8, { everyMs: 50 });
  expect(await onTopic("1")).toEqual(idsUpTo(8));
  const cursor = await gateway.api<{ value: unknown }>("GET", `${channel.path}/source/cursor`);
  expect(cursor.value).toEqual({ timestamp: new Date(upstream.nowMs).toISOString() });
});

it("the newest polls of a source are listed with their response, items and published events", async () => {
  const polls = () => gateway.api<readonly { error: string | null }[]>("GET", `${channel.path}/source/polls`);
  await until(async () => (await polls()).length > 0, { everyMs: 50 });
  const found = { method: "GET", status: 200, requests: 3, items: 8, published: 8, error: null };
  expect((await polls()).at(-1)).toMatchObject(found);
  upstream.faults.push({ kind: "status", status: 404 });
  await until(async () => (await polls()).some(({ error }) => error !== null), { everyMs: 50 });
  const failed = (await polls()).find(({ error }) => error !== null);
  expect(failed).toMatchObject({ method: "GET", status: 404, requests: 1, items: 0, published: 0 });
});

it("a dry run of polling shows the result of the next poll, and neither publishes nor stores anything", async () => {
  upstream.nowMs += 1000;
  const { id } = upstream.insert();
  upstream.update("r00003");
  const dry = await gateway.api<{
    request: { url: string };
    response: { status: number };
    items: { events: { id: string }[]; failures: { reason: string }[] }[];
  }>("POST", `${channel.path}/source/dry-run`, {});
  expect(dry.request.url).toContain("since=");
  expect(dry.response.status).toBe(200);
  const seen = dry.items.map(({ events, failures }) => events[0]?.id ?? failures[0]?.reason);
  // A scheduled poll may have been faster than the dry run.
  expect([[], ["no_match", `${id}/1`]]).toContainEqual(seen.toSorted());
});

it("a polled item that matches no event definition is quarantined, and can be published once a definition matches", async () => {
  const quarantine = `${channel.appPath}/quarantine`;
  const listed = () => gateway.api<{ id: string; reason: string }[]>("GET", quarantine);
  await until(async () => (await listed()).length > 0, { everyMs: 50 });
  const [kept] = await listed();
  expect(kept?.reason).toBe("no_match");
  const record = await gateway.api<{ body: string }>("GET", `${quarantine}/${kept?.id}`);
  const page = JSON.parse(record.body) as { total: number; rows: ({ id: string } | null)[] };
  expect(page.total).toBeGreaterThan(0);
  expect(page.rows.flatMap((row) => row?.id ?? [])).toContain("r00003");
  expect(page.rows).toContain(null);

  const events = ["1", "2"].map((type) => ({ type, typePath: "$.version" }));
  await gateway.api("PUT", channel.path, { events });
  await gateway.api("POST", `${quarantine}/${kept?.id}/redrive`, {});
  await until(async () => (await onTopic("2")).length === 1, { everyMs: 20 });
  expect(await onTopic("2")).toEqual(["r00003/2"]);
  expect(await onTopic("1")).toEqual(idsUpTo(9));
});

it("polling continues from a cursor that was set through the API, without publishing events again", async () => {
  const requestsBefore = upstream.requests.length;
  await gateway.api("PUT", `${channel.path}/source/cursor`, { value: { timestamp: "2026-01-01T00:00:02Z" } });
  const isCursorUsed = () =>
    upstream.requests.slice(requestsBefore).some(({ url }) => url.includes("00%3A00%3A02"));
  await until(isCursorUsed, { everyMs: 20 });
  await until(async () => {
    const { value } = await gateway.api<{ value: { timestamp: string } }>(
      "GET",
      `${channel.path}/source/cursor`,
    );
    return value.timestamp === new Date(upstream.nowMs).toISOString();
  });
  expect(await onTopic("1")).toEqual(idsUpTo(9));
});
