import { beforeAll, describe, expect, it } from "vitest";
import { post } from "../support/deliver.ts";
import type { OpenApi } from "../support/documented.ts";
import { fieldsOn, startTestGateway } from "../support/gateway.ts";
import { METRICS_TOKEN, readMetrics } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import {
  createIntake,
  INTAKE_CHANNEL,
  type Install,
  type IntakeFixture,
  type Tenant,
} from "../support/intakes.ts";
import { until } from "../support/until.ts";

const gateway = givenGateway(
  { INLET_METRICS_TOKEN: METRICS_TOKEN },
  {
    problemTiming: { everyMs: 250, slowEveryMs: 250, openAfterMs: 0, resolveAfterMs: 0 },
    housekeeperTiming: { tickMs: 100 },
  },
);

let intake: IntakeFixture;
let acme: Tenant;
let globex: Tenant;
let first: Install;
let second: Install;

beforeAll(async () => {
  intake = await createIntake(gateway);
  acme = await intake.addOrganization("Acme");
  globex = await intake.addOrganization("Globex");
  first = await acme.install();
  second = await globex.install();
  await intake.setKeys(first, ["A"]);
  await intake.setKeys(second, ["B"]);
});

const idsOf = (install: Install) => fieldsOn(gateway.stores, install.topic, "id");
const held = (reason = "no_install"): Promise<OpenApi[]> =>
  gateway.api<OpenApi[]>("GET", `/blueprints/${intake.blueprintId}/quarantine?reason=${reason}`);

describe("a delivery to an intake", () => {
  it("is split by route key, and each install receives its own items only", async () => {
    const events = [
      { id: "1", team: "A", text: "of Acme" },
      { id: "2", team: "B", text: "of Globex" },
      { id: "3", team: "A" },
    ];
    const sent = await intake.send({ envelope: 1, events });
    expect(sent.body).toMatchObject({ received: 3, published: 3, quarantined: 0, events: [] });
    expect(await idsOf(first)).toEqual(["1", "3"]);
    expect(await idsOf(second)).toEqual(["2"]);
    const again = await intake.send({ envelope: 1, events });
    expect(again.body).toMatchObject({ published: 0, duplicates: 3 });
    await until(async () => (await acme.call("GET", `/apps/${first.appId}/deliveries`)).length > 0);
    const [{ id }] = await acme.call("GET", `/apps/${first.appId}/deliveries`);
    const record = await acme.call("GET", `/apps/${first.appId}/deliveries/${id}`);
    expect(JSON.stringify(record)).toContain("of Acme");
    expect(JSON.stringify(record)).not.toContain("Globex");
  });

  it("is rejected if its signature is not valid, and an install's own address does not accept the intake's secret", async () => {
    const text = JSON.stringify({ events: [{ id: "4", team: "A" }] });
    const wrong = await intake.send(text, { "x-signature": "00" });
    expect(wrong.status).toBe(401);
    const own = await fetch(first.url, { method: "POST", body: text, headers: intake.signed(text) });
    expect(own.status).toBe(401);
  });

  it("is held without an install, and published before later items when an install claims the key", async () => {
    for (const id of ["h1", "h2"]) {
      const { body } = await intake.send({ events: [{ id, team: "new" }] });
      expect(body).toMatchObject({ published: 0, quarantined: 1 });
    }
    const items = await held();
    expect(items).toHaveLength(2);
    expect(items[0]).toMatchObject({ reason: "no_install", detail: expect.stringContaining('"new"') });
    const third = await acme.install();
    await intake.setKeys(third, ["new"]);
    const { status } = await intake.send({ events: [{ id: "h3", team: "new" }] });
    expect(status).toBe(200);
    await until(async () => (await idsOf(third)).length === 3);
    expect(await idsOf(third)).toEqual(["h1", "h2", "h3"]);
    await until(async () => (await held()).length === 0);
  });

  it("is held as `no_route` if an item has no key, and the owner can read it", async () => {
    const { body } = await intake.send({ events: [{ id: "5" }, { id: "6", team: "A" }] });
    expect(body).toMatchObject({ received: 2, published: 1, quarantined: 1 });
    const [item] = await held("no_route");
    const whole = await gateway.api<OpenApi>(
      "GET",
      `/blueprints/${intake.blueprintId}/quarantine/${item?.id}`,
    );
    expect(JSON.parse(whole.body)).toEqual({ events: [{ id: "5" }] });
  });

  it("gets 200 although one organization is over its limit, whose items wait in its own quarantine", async () => {
    const path = `/organizations/${globex.organizationId}/limits`;
    await gateway.api("PUT", path, { hookRequestsPerSecond: 1 });
    const sendBoth = (n: number) =>
      intake.send({
        events: [
          { id: `a${n}`, team: "A" },
          { id: `b${n}`, team: "B" },
        ],
      });
    await until(async () => (await sendBoth(Date.now())).body.quarantined === 1);
    const [record] = await globex.call("GET", `/apps/${second.appId}/quarantine?reason=over_limit`);
    await gateway.api("PUT", path, { hookRequestsPerSecond: null });
    const redriven = await globex.call("POST", `/apps/${second.appId}/quarantine/${record.id}/redrive`, {});
    expect(redriven).toMatchObject({ status: "released" });
  });

  it("is quarantined if the channel of the install rejects invalid items", async () => {
    const channel = `/apps/${second.appId}/channels/main`;
    await globex.call("PUT", channel, { config: { onInvalid: "reject" } });
    await until(async () => {
      const { status, body } = await intake.send({ events: [{ team: "B" }] });
      expect(status).toBe(200);
      return body.quarantined === 1;
    });
  });

  it("is buffered while the install's channel is paused, and while the intake is paused", async () => {
    await acme.call("POST", `/apps/${first.appId}/channels/main/pause`);
    await until(async () => {
      const { body } = await intake.send({ events: [{ id: "p1", team: "A" }] });
      return body.quarantined === 1;
    });
    await gateway.api("POST", `/blueprints/${intake.blueprintId}/intake/pause`);
    await until(async () => {
      await intake.send({ events: [{ id: "p2", team: "A" }] });
      return (await held("paused")).length > 0;
    });
    await gateway.api("POST", `/blueprints/${intake.blueprintId}/intake/resume`);
    await acme.call("POST", `/apps/${first.appId}/channels/main/resume`);
    await until(async () => (await idsOf(first)).includes("p2"));
    expect((await idsOf(first)).filter((id) => id.startsWith("p"))).toEqual(["p1", "p2"]);
  });
});

it("the token of an intake that is in the body is hidden from installs, because it could be used for other installs", async () => {
  const token = "a token that is in each body";
  const verification = { scheme: "token", in: "body", name: "$.token" };
  const channel = { uid: "main", kind: "webhook", config: { verification }, events: [{ type: "changed" }] };
  const withToken = await createIntake(gateway, { channel, config: { secrets: [{ value: token }] } });
  const install = await (await withToken.addOrganization("Initech")).install();
  await withToken.setKeys(install, ["A"]);
  const { status, body } = await withToken.send({ token, id: "1", team: "A" });
  expect([status, body]).toMatchObject([200, { published: 1 }]);
  const [data = ""] = await fieldsOn(gateway.stores, install.topic, "data");
  expect(JSON.parse(data)).toEqual({ token: "***", id: "1", team: "A" });
});

describe("while the quarantine of an install's organization is full", () => {
  it("its items wait in the intake's quarantine, others are not affected, and all are published in order when there is space", async () => {
    const { api } = gateway;
    const crowded = await createIntake(gateway);
    const [initech, umbrella] = await Promise.all([
      crowded.addOrganization("Initech"),
      crowded.addOrganization("Umbrella"),
    ]);
    const [full, free] = await Promise.all([initech.install(), umbrella.install()]);
    await crowded.setKeys(full, ["full"]);
    await crowded.setKeys(free, ["free"]);
    const limit = (quarantineBytes: number | null, organizationId = initech.organizationId) =>
      api("PUT", `/organizations/${organizationId}/limits`, { quarantineBytes });
    const overflow = (): Promise<OpenApi[]> =>
      api<OpenApi[]>("GET", `/blueprints/${crowded.blueprintId}/quarantine?reason=over_limit`);
    const waiting = (): Promise<OpenApi[]> =>
      initech.call("GET", `/apps/${full.appId}/quarantine?reason=paused`);
    await initech.call("POST", `/apps/${full.appId}/channels/main/pause`);
    let sent = 0;
    const send = (teams = ["full", "free"], text = "") =>
      crowded.send({ events: teams.map((team) => ({ id: String(sent), team, text })) }).finally(() => sent++);
    await until(async () => {
      expect((await send()).status).toBe(200);
      return (await waiting()).length > 0;
    });
    await limit(1_000);
    await until(async () => {
      expect((await send()).status).toBe(200);
      return (await overflow()).length > 0;
    });
    const open = async (call: <T>(method: string, path: string) => Promise<T>, kind: string) =>
      (await call<OpenApi[]>("GET", `/problems?kind=${kind}&state=opened`))[0];
    await until(async () => (await open(api, "intake_overflow")) !== undefined);
    const problem = await open(api, "intake_overflow");
    expect(problem).toMatchObject({ app: null, blueprint: { id: crowded.blueprintId } });
    expect(problem?.figures.heldDeliveries).toBeGreaterThan(0);
    const { organizationId, appId } = full;
    for (const hidden of [organizationId, appId, "Initech"])
      expect(JSON.stringify(problem)).not.toContain(hidden);
    expect(await readMetrics(gateway.origin)).toMatch(
      /inlet_intake_held_deliveries\{reason="over_limit"\} [1-9]/,
    );
    await until(async () => (await open(initech.call, "quarantine_near_limit")) !== undefined);
    // A later item waits behind the first one, even if there is space for it meanwhile.
    await limit(null);
    const before = (await waiting()).length;
    expect((await send()).status).toBe(200);
    await until(async () => (await waiting()).length > before);
    await limit(1_000);

    const [{ id: owner }] = await api<OpenApi[]>("GET", "/organizations");
    await limit(1_000, owner);
    await until(async () => (await send(["full"])).status === 503);
    expect((await send(["free"])).status).toBe(200);
    const both = await send();
    expect(both.status).toBe(503);
    await limit(null, owner);
    await until(async () => (await send()).status === 200);
    await limit(null);
    await initech.call("POST", `/apps/${full.appId}/channels/main/resume`);
    await until(async () => (await idsOf(full)).includes(String(sent - 1)), { everyMs: 50 });
    const ids = (await idsOf(full)).map(Number);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(new Set(ids).size).toBe(ids.length);
    await until(async () => (await open(api, "intake_overflow")) === undefined);
  });
});

it("the same signed bytes with another route key are a replay at each gateway, also after a restart", async () => {
  const config = { verification: { ...INTAKE_CHANNEL.config.verification, bindDedupe: "signedBytes" } };
  const channel = { ...INTAKE_CHANNEL, config, events: [{ type: "changed" }] };
  const unsigned = { channel, routeBy: ["$headers['x-team']"], trustUnsigned: true };
  const intake = await createIntake(gateway, unsigned);
  const tenant = await intake.addOrganization("Hooli");
  const installs = [await tenant.install(), await tenant.install()];
  for (const [n, install] of installs.entries()) await intake.setKeys(install, [`team ${n}`]);
  const path = new URL(intake.url).pathname;
  const text = JSON.stringify({ amount: 1 });
  const sendTo = async (origin: string, team: string) => {
    const sent = await post(`${origin}${path}`, text, { ...intake.signed(text), "x-team": team });
    expect(sent.status).toBe(200);
    const { published, duplicates, quarantined } = sent.body;
    return { published, duplicates, quarantined };
  };
  const published = { published: 1, duplicates: 0, quarantined: 0 };
  const duplicate = { published: 0, duplicates: 1, quarantined: 0 };
  const replayed = { published: 0, duplicates: 0, quarantined: 1 };
  expect(await sendTo(gateway.origin, "team 0")).toEqual(published);
  for (let restart = 0; restart < 2; restart++) {
    await using other = await startTestGateway(gateway.stores.env);
    expect(await sendTo(other.origin, "team 0")).toEqual(duplicate);
    expect(await sendTo(other.origin, "team 1")).toEqual(replayed);
    expect(await sendTo(gateway.origin, "team 1")).toEqual(replayed);
  }
  const [item] = await gateway.api<OpenApi[]>(
    "GET",
    `/blueprints/${intake.blueprintId}/quarantine?reason=replayed`,
  );
  expect(item).toMatchObject({ reason: "replayed" });
  // Replays are not charged to the account that makes other deliveries get 503.
  const [{ id: owner }] = await gateway.api<[{ id: string }]>("GET", "/organizations");
  const { number } = await gateway.stores.db
    .selectFrom("channels")
    .select("number")
    .where("appId", "=", intake.blueprintId)
    .executeTakeFirstOrThrow();
  const accounts = await gateway.stores.client.hkeys(`inlet:{q.${owner}}:b`);
  expect(accounts).toContain(`${number}:replayed`);
  expect(accounts).not.toContain(`${number}:a`);
  expect(await idsOf(installs[1] as Install)).toEqual([]);
});
