import { describe, expect, it } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import { givenChannel } from "../support/channels.ts";
import { post } from "../support/deliver.ts";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { opened } from "../support/opened.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { until } from "../support/until.ts";

const stores = opened(createTestStores);
const handler = opened(startHandlerServer);
const upstream = opened(() => PollUpstream.start());
const deps = { handlersTiming: { firstRetryMs: 50, mostRetryMs: 200, breakerMs: 50 } };
const start = (env: Readonly<Record<string, string>> = {}) =>
  startTestGateway({ ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8", ...env }, deps);

const TOKEN = "a-token-of-a-sender-0123456789";
const ROWS = 9;

/** Counts by metric. Those of rejected requests and quarantined items also have a detail: `rejected 401`. */
type Counts = Record<string, number>;

/** Sends deliveries with several outcomes, and adds the outcomes of the responses to `counts`. */
async function sendLoad(address: string, transport: string, counts: Counts): Promise<void> {
  const count = (name: string, more = 1) => {
    counts[name] = (counts[name] ?? 0) + more;
  };
  async function send(body: unknown, headers: Readonly<Record<string, string>> = {}) {
    const { status, body: parsed } = await post(address, body, { "x-token": TOKEN, ...headers });
    if (status !== 200) {
      for (const name of ["received", "rejected", `rejected ${status}`]) count(name);
      return;
    }
    const outcome: Outcome = parsed;
    count("received", outcome.received);
    count("published", outcome.published);
    count("duplicate", outcome.duplicates);
    count("ignored", outcome.ignored);
    count("quarantined", outcome.quarantined);
    for (const { reason } of outcome.quarantine) count(`quarantined ${reason}`);
    for (const { type, status } of outcome.events) count(`${status} ${type}`);
  }
  const item = (n: number, type = "paid") => ({ type, id: `${transport}-${n}` });
  for (let n = 0; n < 20; n++) {
    await Promise.all([
      send([item(n), item(n, "refunded"), item(1_000 + n), { type: "unknown" }]),
      send([{ type: "paid" }]),
      send([item(n)], { "x-token": "wrong" }),
      send("not JSON"),
      send([item(n)], { "content-encoding": "lzma" }),
      send(`[${" ".repeat(3_000)}]`),
    ]);
    await send([item(n), item(n, "refunded")]);
  }
}

describe("the series of a load over webhooks, polls and handlers", () => {
  it("equal the counts of the clients, after the gateways have stopped", async () => {
    const counts: Counts = {};
    const fromMs = Date.now() - 120_000;
    upstream.clear({ order: "ascending" });
    for (let n = 0; n < ROWS; n++) {
      upstream.nowMs += 1_000;
      upstream.insert();
    }
    handler.answers.set("/h", ({ headers }, times) => ({
      status: times === 1 && headers["webhook-id"]?.endsWith("-7") ? 500 : 204,
    }));
    let appId = "";
    let channel = "";
    {
      await using fast = await start();
      await using node = await start({ INLET_HTTP_FAST_PATH: "off" });
      const pushed = await givenChannel(fast, {
        uid: "orders",
        config: {
          itemsPath: "$",
          onNoMatch: "ignore",
          limits: { maxBodyBytes: 2_000 },
          verification: { scheme: "token", name: "x-token" },
          secrets: [{ value: TOKEN }],
        },
        events: ["paid", "refunded"].map((type) => ({ type, typePath: "$.type", idPath: "$.id" })),
      });
      const request = { url: `${upstream.origin}/rows`, query: { since: "{{cursor}}" } };
      const polled = await givenChannel(fast, {
        uid: "rows",
        kind: "polling",
        config: {
          run: "always",
          request,
          schedule: { intervalSeconds: 5 },
          discriminator: { by: "timestamp", path: "$.at" },
          itemsPath: "$.rows",
          itemId: "$.id",
          versionPath: "$.version",
          startAt: "earliest",
        },
        events: [{ type: "1", typePath: "$.version" }],
      });
      await fast.api("POST", `${pushed.appPath}/events/subscribe`, {
        eventUid: "*",
        handler: { url: handler.urlOf("/h"), ordered: false },
      });
      ({ appId } = pushed);
      channel = pushed.uid;
      await until(async () => (await stores.client.xlen(polled.topicOf("1"))) === ROWS);
      await Promise.all(
        [fast, node].map(({ origin }, n) => sendLoad(`${origin}${pushed.hookPath}`, `t${n}`, counts)),
      );
      const published = counts.published ?? 0;
      await until(() => handler.taken("/h").length >= published);
      counts.handlerSucceeded = handler.taken("/h").length;
      counts.handlerFailed = handler.at("/h").length - handler.taken("/h").length;
    }
    await using later = await start();
    const to = new Date(Date.now() + 60_000).toISOString();
    const range = `from=${new Date(fromMs).toISOString()}&to=${to}`;
    type Points = readonly [at: string, value: number | null][];
    const read = (query: string) => later.api<{ points: Points }>("GET", `/metrics/series?${range}&${query}`);
    async function sum(query: string): Promise<number> {
      const { points } = await read(query);
      return points.reduce((total, [, value]) => total + (value ?? 0), 0);
    }
    const stored: Counts = {};
    for (const name of Object.keys(counts)) {
      const [metric = "", detail] = name.split(" ");
      const filter = { rejected: "status", quarantined: "reason" }[metric] ?? "type";
      const query = `metric=${metric}&appId=${appId}&channel=${channel}`;
      stored[name] = await sum(detail === undefined ? query : `${query}&${filter}=${detail}`);
    }
    expect(Object.keys(counts)).toEqual(
      expect.arrayContaining(["rejected 401", "rejected 413", "rejected 415", "published paid"]),
    );
    expect(stored).toEqual(counts);
    for (const metric of ["received", "published"])
      expect(await sum(`metric=${metric}&channel=rows`)).toBe(ROWS);
    expect(await sum("metric=published")).toBe(ROWS + (counts.published ?? 0));
    const { points } = await read(`metric=latencyP99Ms&appId=${appId}`);
    expect(points.some(([, value]) => value !== null && value > 0)).toBe(true);
    const totals = await later.api<readonly Counts[]>("GET", `/metrics/channels?${range}&appId=${appId}`);
    expect(totals).toMatchObject([
      { received: counts.received, rejected: counts.rejected, handlerFailed: counts.handlerFailed },
    ]);
  });
});

describe("a request for series", () => {
  it("is rejected with the field, its value and a fix if the range, the step or a filter does not fit", async () => {
    await using gateway = await start();
    const hour = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
    const bad = [
      ["metric=speed", "metric", "received"],
      [`metric=received&from=${hour(0)}&to=${hour(-1)}`, "from", "must be before"],
      ["metric=received&step=90", "step", "90 must be a multiple of 60"],
      [`metric=received&step=60&from=${hour(-72)}`, "step", "use 3600"],
      [`metric=received&step=3600&from=${hour(-24 * 200)}`, "step", "use at least 7200"],
      ["metric=received&type=paid", "type", "`published`"],
      ["metric=published&reason=no_match", "reason", "use the metric `quarantined`"],
      ["metric=published&status=429", "status", "use the metric `rejected`"],
    ] as const;
    for (const [query, path, fix] of bad) {
      const message = await gateway.api("GET", `/metrics/series?${query}`).catch(String);
      expect(message).toContain(` 400 `);
      expect(message).toContain(`"path":"${path}"`);
      expect(message).toContain(fix);
    }
    const { stepSeconds, points } = await gateway.api<{ stepSeconds: number; points: unknown[] }>(
      "GET",
      `/metrics/series?metric=received&from=${hour(-24 * 30)}`,
    );
    expect([stepSeconds, points.length > 100]).toEqual([21_600, true]);
  });
});
