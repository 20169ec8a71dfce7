import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type GivenChannel, givenChannel } from "../../support/channels.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);

const events = [{ type: "push", idPath: "$.id", payloadPath: "$.data" }];
const install = (config: object = {}) => givenChannel(spine, { config, events });
const change = ({ path }: GivenChannel, body: object) => spine.api.call("PUT", path, body);
const list = (appId: string, query = "") => spine.api.call("GET", `/apps/${appId}/quarantine${query}`);
const redrive = (appId: string, id: string, body?: object) =>
  spine.api.call("POST", `/apps/${appId}/quarantine/${id}/redrive`, body);
const entriesOf = (appId: string) => spine.api.call("GET", `/apps/${appId}/events`).then(({ body }) => body);

/** Returns the totals of deliveries, events and quarantined items. */
async function countResults() {
  const text = await spine.metrics.registry.metrics();
  const total = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, "gm"))].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    );
  return {
    deliveries: total("inlet_deliveries_total"),
    events: total("inlet_events_total"),
    quarantined: total("inlet_quarantined_total"),
  };
}

/** Sends an item without an id. Returns the id of its quarantine record. */
async function quarantineOne({ send }: GivenChannel, body: unknown = { data: 1 }): Promise<string> {
  const { quarantine } = await send(body);
  return quarantine[0]?.id ?? "";
}

describe("a quarantined item", () => {
  it("is returned with the whole delivery, except for credentials and the secret address of the channel", async () => {
    const channel = await install({
      verification: {
        scheme: "hmac",
        algorithm: "sha256",
        encoding: "hex",
        in: "header",
        name: "x-signature",
      },
    });
    await change(channel, { config: { secrets: [{ value: "k" }] } });
    const text = '{"data":"\u00e9"}';
    const signature = createHmac("sha256", "k").update(text).digest("hex");
    const sent = await channel.send(text, { "x-signature": signature, "x-other": "kept" });
    const [{ id } = { id: "" }] = sent.quarantine;
    const { body } = await spine.api.call("GET", `${channel.appPath}/quarantine/${id}`);
    expect(body).toEqual({
      id,
      appId: channel.appId,
      channelUid: "main",
      reason: "id_missing",
      path: expect.any(String),
      detail: expect.any(String),
      item: null,
      definitions: ["push"],
      count: 1,
      firstAt: expect.stringMatching(/Z$/),
      lastAt: expect.stringMatching(/Z$/),
      arrivedAt: expect.stringMatching(/Z$/),
      deliveryId: null,
      method: "POST",
      headers: { "content-type": "application/json", "x-other": "kept" },
      query: {},
      body: text,
      bodyEncoding: "utf-8",
      explanation: [
        expect.objectContaining({ failures: [expect.objectContaining({ reason: "id_missing" })] }),
      ],
    });
    expect(JSON.stringify(body)).not.toContain(channel.id);
    expect(JSON.stringify(body)).not.toContain(signature);
  });

  it("is returned without the secrets and addresses in its body, but is redriven with its original body", async () => {
    const verification = { scheme: "token", in: "body", name: "$.token" };
    const channel = await install({ verification });
    const token = 's3cr\u00e9t-"token"';
    await change(channel, { config: { secrets: [{ value: token }] } });
    const sent = { token, hook: `https://hooks.example/hooks/${channel.id}`, data: { seen: [token, 1] } };
    const headers = {
      referer: `https://hooks.example/hooks/${channel.id}?a=1`,
      "x-api-key": "an-api-key",
      "x-other": "kept",
    };
    const { quarantine } = await channel.send(JSON.stringify(sent), headers);
    const id = quarantine[0]?.id ?? "";
    const item = `${channel.appPath}/quarantine/${id}`;
    const { body } = await spine.api.call("GET", item);
    expect(body.headers).toEqual({
      "content-type": "application/json",
      referer: "https://hooks.example/hooks/ch_***?a=1",
      "x-other": "kept",
    });
    expect(JSON.parse(body.body)).toEqual({
      token: "***",
      hook: "https://hooks.example/hooks/ch_***",
      data: { seen: ["***", 1] },
    });
    const events = [{ type: "push", idPath: "$.token", payloadPath: "$.data" }];
    const preview = await spine.api.call.post(`${channel.appPath}/quarantine/preview`, {
      channelId: channel.id,
      events,
    });
    const explained = await spine.api.call.post(`${channel.path}/explain`, {
      body: JSON.stringify(sent),
      events,
    });
    expect(explained.verification.result).toBe("verified");
    for (const shown of [body, preview, explained]) {
      const text = JSON.stringify(shown);
      for (const hidden of ["s3cr", channel.id, "an-api-key"]) expect(text).not.toContain(hidden);
    }
    await change(channel, { events });
    expect((await redrive(channel.appId, id)).body).toMatchObject({ status: "released" });
    expect((await entriesOf(channel.appId))[0].data).toEqual(sent.data);
  });

  it("is stored without the wrong secret if verification failed because of that secret", async () => {
    const channel = await install({ verification: { scheme: "token", in: "body", name: "$.token" } });
    await change(channel, { config: { secrets: [{ value: "the-right-token" }] } });
    const result = await spine.deliver(channel.id, '{"token":"another-right-token","a":1}');
    expect(result.kind).toBe("unverified");
    await until(async () => (await list(channel.appId)).body.length === 1);
    const stored = await spine.server.client.keys("*");
    const texts = await Promise.all(
      stored.map(async (key) => JSON.stringify(await spine.server.client.hgetall(key).catch(() => ""))),
    );
    expect(texts.join()).toContain('\\"a\\":1');
    expect(texts.join()).not.toContain("another-right-token");
  });

  it("is returned with a binary body in base64", async () => {
    const channel = await install();
    const id = await quarantineOne(channel, Buffer.from([0x7b, 0xff]));
    const { body } = await spine.api.call("GET", `${channel.appPath}/quarantine/${id}`);
    expect(body).toMatchObject({ reason: "invalid_body", body: "e/8=", bodyEncoding: "base64" });
  });

  it("can be deleted permanently", async () => {
    const channel = await install();
    const id = await quarantineOne(channel);
    const path = `${channel.appPath}/quarantine/${id}`;
    expect(await spine.api.call("DELETE", path)).toMatchObject({ status: 200, body: { id } });
    for (const method of ["GET", "DELETE"]) expect((await spine.api.call(method, path)).status).toBe(404);
    expect((await redrive(channel.appId, id)).status).toBe(404);
    expect((await list(channel.appId)).body).toEqual([]);
  });
});

describe("the list of quarantined items", () => {
  it("is paginated in order of arrival, and contains a repeated item once with the number of its arrivals", async () => {
    const channel = await install();
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push(await quarantineOne(channel, { data: i }));
    expect(await quarantineOne(channel, { data: 0 })).toBe(ids[0]);
    const { body, headers } = await list(channel.appId, "?limit=2");
    expect(body.map(({ id, count }: { id: string; count: number }) => [id, count])).toEqual([
      [ids[0], 2],
      [ids[1], 1],
    ]);
    expect(headers.get("x-total-count")).toBe("3");
    expect(Object.keys(body[0])).not.toContain("body");
  });

  it("can be filtered by channel, reason and time", async () => {
    const app = await spine.install(
      { uid: "main", kind: "webhook", events },
      { uid: "second", kind: "webhook", events },
    );
    const [main, second] = app.channels;
    const first = (await spine.send(main.id, { data: 1 })).quarantine[0]?.id;
    const other = (await spine.send(second.id, "{")).quarantine[0]?.id;
    const ids = async (query: string) => (await list(app.id, query)).body.map(({ id }: { id: string }) => id);
    expect(await ids(`?channelId=${second.id}`)).toEqual([other]);
    expect(await ids("?channelId=second")).toEqual([other]);
    expect(await ids("?reason=id_missing")).toEqual([first]);
    expect(await ids("?reason=paused")).toEqual([]);
    const { firstAt } = (await list(app.id)).body[0];
    const next = new Date(Date.parse(firstAt) + 3_600_000).toISOString();
    expect(await ids(`?from=${firstAt}&to=${next}`)).toEqual([first, other]);
    expect(await ids(`?to=${firstAt}`)).toEqual([]);
    expect(await ids(`?from=${next}`)).toEqual([]);
    const elsewhere = await install();
    expect((await list(app.id, `?channelId=${elsewhere.id}`)).status).toBe(404);
    expect((await list(app.id, "?reason=bad")).body.details[0].path).toBe("reason");
    expect((await list(app.id, "?from=bad")).body.details[0].path).toBe("from");
  });

  it("excludes the items of a deleted channel, which can also be neither read nor redriven", async () => {
    const channel = await install();
    const id = await quarantineOne(channel);
    await spine.api.call("DELETE", channel.path);
    expect((await list(channel.appId)).body).toEqual([]);
    expect((await spine.api.call("GET", `${channel.appPath}/quarantine/${id}`)).status).toBe(404);
    expect((await redrive(channel.appId, id)).status).toBe(404);
  });
});

describe("a redrive (publishing from quarantine)", () => {
  it("publishes the item with the channel's current event definitions, and removes the item from quarantine", async () => {
    const channel = await install();
    const id = await quarantineOne(channel, { key: "k1", data: 7 });
    await change(channel, { events: [{ ...events[0], idPath: "$.key" }] });
    const { status, body } = await redrive(channel.appId, id);
    expect([status, body]).toEqual([
      200,
      {
        id,
        status: "released",
        message: null,
        events: [expect.objectContaining({ id: "k1", status: "published" })],
        quarantine: [],
      },
    ]);
    expect(await entriesOf(channel.appId)).toMatchObject([{ id: "k1", data: 7 }]);
    expect((await list(channel.appId)).body).toEqual([]);
  });

  it("leaves an item unchanged in quarantine if it fails again for the same reason", async () => {
    const channel = await install();
    const id = await quarantineOne(channel);
    const before = (await list(channel.appId)).body;
    expect((await redrive(channel.appId, id)).body).toMatchObject({
      id,
      status: "kept",
      events: [],
      quarantine: [{ id, reason: "id_missing" }],
    });
    expect((await list(channel.appId)).body).toEqual(before);
  });

  it("leaves an item in quarantine once, with the new reason, if it fails for a different reason", async () => {
    const channel = await install();
    await quarantineOne(channel, { key: "k" });
    const id = await quarantineOne(channel, { key: "k" });
    const later = await quarantineOne(channel, { other: "k" });
    const [before] = (await list(channel.appId)).body;
    await change(channel, { events: [{ ...events[0], idPath: "$.key" }] });
    const { body } = await redrive(channel.appId, id);
    expect(body).toMatchObject({ status: "kept", quarantine: [{ reason: "payload_missing" }] });
    const left = (await list(channel.appId)).body;
    const { firstAt, lastAt } = before;
    expect(left).toMatchObject([
      { id: body.quarantine[0].id, reason: "payload_missing", count: 2, firstAt, lastAt },
      { id: later },
    ]);
  });

  it("does not count a redrive as a delivery or as a quarantined item in the metrics, but counts its events", async () => {
    const channel = await install();
    const id = await quarantineOne(channel, { key: "k" });
    const before = await countResults();
    await redrive(channel.appId, id);
    await change(channel, { events: [{ ...events[0], idPath: "$.key", payloadPath: "$" }] });
    expect((await redrive(channel.appId, id)).body.status).toBe("released");
    expect(await countResults()).toEqual({ ...before, events: before.events + 1 });
  });

  it("publishes an item under a new id on request, but only if its original id conflicts with another event", async () => {
    const channel = await install();
    await channel.send({ id: "1", data: "a" });
    const id = await quarantineOne(channel, { id: "1", data: "b" });
    const again = await redrive(channel.appId, id);
    expect(again.body).toMatchObject({ status: "kept", quarantine: [{ id, reason: "id_conflict" }] });
    expect((await list(channel.appId)).body).toMatchObject([{ id, count: 1 }]);
    const { body } = await redrive(channel.appId, id, { asNewId: true });
    expect(body).toMatchObject({ status: "released", events: [{ status: "published" }] });
    expect((await entriesOf(channel.appId)).map(({ data }: { data: string }) => data)).toEqual(["a", "b"]);
    expect((await list(channel.appId)).body).toEqual([]);
    const other = await quarantineOne(channel);
    const refused = await redrive(channel.appId, other, { asNewId: true });
    expect([refused.status, refused.body.details[0].path]).toEqual([400, "asNewId"]);
    expect((await redrive(channel.appId, other, { force: true })).status).toBe(400);
  });

  it("publishes each valid item of a delivery that was quarantined as a whole", async () => {
    const channel = await install({ itemsPath: "$.items" });
    const id = await quarantineOne(channel, {
      list: [{ id: "1", data: 1 }, { id: "2" }, { id: "3", data: 3 }],
    });
    expect((await list(channel.appId)).body).toMatchObject([{ id, item: null, reason: "invalid_body" }]);
    await change(channel, { config: { itemsPath: "$.list" } });
    const { body } = await redrive(channel.appId, id);
    expect(body).toMatchObject({
      status: "kept",
      events: [
        { id: "1", status: "published" },
        { id: "3", status: "published" },
      ],
      quarantine: [{ reason: "payload_missing" }],
    });
    expect((await list(channel.appId)).body).toMatchObject([
      { item: 1, reason: "payload_missing", count: 1 },
    ]);
  });

  it("publishes an item only once after three concurrent requests, even under a new id", async () => {
    const channel = await install();
    await channel.send({ id: "1", data: "a" });
    const id = await quarantineOne(channel, { id: "1", data: "b" });
    const answers = await Promise.all([1, 2, 3].map(() => redrive(channel.appId, id, { asNewId: true })));
    expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 404)).toEqual(
      [],
    );
    expect((await entriesOf(channel.appId)).map(({ data }: { data: string }) => data)).toEqual(["a", "b"]);
  });

  it("does not publish a delivery whose signature is invalid", async () => {
    const channel = await install();
    const compiled = await spine.path.rules.find(channel.id);
    if (!compiled) throw new Error("no channel");
    const failure = { item: 0, reason: "signature_invalid", detail: "sampled", definitions: [] } as const;
    const delivery = {
      method: "POST",
      headers: {},
      query: {},
      body: Buffer.from("{}"),
      arrivedAtMs: Date.now(),
    };
    const [id = ""] = await spine.path.quarantine.put(
      compiled.identity,
      { delivery, items: [{ failure, keep: "all" }] },
      { signal: new AbortController().signal },
    );
    const { status, body } = await redrive(channel.appId, id);
    expect([status, body.code]).toEqual([409, "conflict"]);
    const many = await spine.api.call("POST", `${channel.appPath}/quarantine/redrive`, {});
    expect(many.body).toMatchObject([{ id, status: "refused", events: [] }]);
    expect((await list(channel.appId)).body).toHaveLength(1);
  });

  it("publishes all items that match a filter, in order of arrival, and returns a result for each item", async () => {
    const channel = await install();
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push(await quarantineOne(channel, { key: `k${i}`, data: i }));
    ids.push(await quarantineOne(channel, { data: 3 }));
    const broken = await quarantineOne(channel, "{");
    await change(channel, { events: [{ ...events[0], idPath: "$.key" }] });
    const { body } = await spine.api.call("POST", `${channel.appPath}/quarantine/redrive`, {
      reason: "id_missing",
    });
    expect(body.map(({ id, status }: { id: string; status: string }) => [id, status])).toEqual([
      [ids[0], "released"],
      [ids[1], "released"],
      [ids[2], "released"],
      [ids[3], "kept"],
    ]);
    expect((await entriesOf(channel.appId)).map(({ data }: { data: number }) => data)).toEqual([0, 1, 2]);
    expect((await list(channel.appId)).body.map(({ id }: { id: string }) => id)).toEqual([ids[3], broken]);
    const none = await spine.api.call("POST", `${channel.appPath}/quarantine/redrive`, { reason: "paused" });
    expect([none.status, none.body]).toEqual([200, []]);
    const bad = await spine.api.call("POST", `${channel.appPath}/quarantine/redrive`, { limit: 201 });
    expect(bad.body.details.map(({ path }: { path: string }) => path)).toEqual(["limit"]);
  });

  it("requires the permission apps.write, whereas reading an item requires only apps.read", async () => {
    const channel = await install();
    const id = await quarantineOne(channel);
    const reader = spine.api.as(await spine.api.keyWith("apps.read"));
    expect((await reader("GET", `${channel.appPath}/quarantine/${id}`)).status).toBe(200);
    const refused = await reader("POST", `${channel.appPath}/quarantine/${id}/redrive`);
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining("apps.write")]);
    expect((await reader("POST", `${channel.appPath}/quarantine/redrive`)).status).toBe(403);
  });
});

it("a quarantined item is not found under another app of its organization, or with a malformed id", async () => {
  const channel = await install();
  const other = await install();
  const id = await quarantineOne(channel);
  const wrong = ["*", "r:1", "a%0d%0a", "x".repeat(65)].map((one) => `${channel.appPath}/quarantine/${one}`);
  for (const path of [`/apps/${other.id}/quarantine/${id}`, ...wrong]) {
    for (const [method, suffix] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/redrive"],
    ] as const)
      expect([path, (await spine.api.call(method, path + suffix)).status]).toEqual([path, 404]);
  }
  expect((await list(channel.appId)).body).toHaveLength(1);
});

it("the groups of quarantined items count items by reason and event definition, with their first and last arrival", async () => {
  const channel = await install();
  await quarantineOne(channel, { data: 1 });
  await quarantineOne(channel, { data: 2 });
  await quarantineOne(channel, { data: 2 });
  await quarantineOne(channel, { id: "1" });
  const grouped = await spine.api.call.get(`${channel.appPath}/quarantine/groups?channelId=main`);
  expect(grouped).toMatchObject({ matched: 3, examined: 3 });
  const byReason = Object.fromEntries(
    grouped.groups.map((group: { reason: string }) => [group.reason, group]),
  );
  expect(byReason).toMatchObject({
    id_missing: { channelUid: "main", definition: "push", items: 2, arrivals: 3 },
    payload_missing: { definition: "push", items: 1, arrivals: 1 },
  });
  const { firstAt, lastAt } = byReason.id_missing;
  expect(firstAt <= lastAt).toBe(true);
  const none = await spine.api.call.get(`${channel.appPath}/quarantine/groups?reason=no_match`);
  expect(none).toEqual({ matched: 0, examined: 0, groups: [] });
});
