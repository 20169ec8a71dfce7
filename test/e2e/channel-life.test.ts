import { sql } from "kysely";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import { type GivenChannel, givenChannel, type InstalledChannel } from "../support/channels.ts";
import { itDeep } from "../support/deep-run.ts";
import { deliver, post } from "../support/deliver.ts";
import { fieldsOn, type TestGateway } from "../support/gateway.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { until } from "../support/until.ts";

const one = givenGateway();
const { stores } = one;
const other = givenGateway({}, { stores });
afterAll(() => vi.restoreAllMocks());

/** A test gateway in this process, or one in a process of its own. */
type Addressed = Pick<TestGateway, "api" | "origin">;

const install = () => givenChannel(one, { uid: "in", events: [{ type: "tick", idPath: "$.n" }] });

const act = (gateway: Addressed, { appId, id }: InstalledChannel, what: string, body: object = {}) =>
  gateway.api<InstalledChannel>("POST", `/apps/${appId}/channels/${id}/${what}`, body);

const addressOf = ({ origin }: Addressed, { id }: InstalledChannel) => `${origin}/hooks/${id}`;
const send = (gateway: Addressed, channel: InstalledChannel, n: number) =>
  deliver(addressOf(gateway, channel), { n });
const statusOf = async (gateway: Addressed, channel: InstalledChannel) =>
  (await post(addressOf(gateway, channel), { n: 1 })).status;

const reasons = ({ quarantine }: Outcome) => quarantine.map(({ reason }) => reason);

async function onTopic({ topicOf }: GivenChannel): Promise<readonly number[]> {
  return (await fieldsOn(stores, topicOf("tick"), "data")).map((data) => JSON.parse(data).n);
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

describe("a channel that is served by two gateways", () => {
  it("is also paused on the other gateway, and publishes buffered deliveries in order after a resume", async () => {
    const channel = await install();
    expect((await send(other, channel, -1)).published).toBe(1);
    await act(one, channel, "pause");
    let n = -1;
    await until(async () => reasons(await send(other, channel, --n)).includes("paused"), {
      everyMs: 50,
    });
    const before = (await onTopic(channel)).length;
    for (const i of range(0, 40)) await send(i % 2 === 0 ? one : other, channel, i);
    expect(await onTopic(channel)).toHaveLength(before);

    await act(other, channel, "resume");
    let next = 40;
    let passed = 0;
    await until(async () => {
      const outcome = await send(next % 2 === 0 ? one : other, channel, next++);
      passed = outcome.published === 1 ? passed + 1 : 0;
      return passed >= 20;
    });
    const order = (await onTopic(channel)).filter((i) => i >= 0);
    expect(order).toEqual(range(0, next));
  });

  itDeep(
    "loses no delivery if the gateway that resumes it is killed while publishing buffered deliveries",
    async () => {
      const channel = await install();
      const dying = await startGatewayProcess(stores.env);
      await act(dying, channel, "pause");
      for (let n = 0; n < 120; n += 20) {
        // Until both gateways know of the pause, a delivery could still pass.
        await Promise.all(range(n, n + 20).map((i) => send(dying, channel, i)));
      }
      await act(dying, channel, "resume");
      await until(async () => (await onTopic(channel)).length > 0, { everyMs: 1 });
      dying.kill("SIGKILL");
      await dying.exited;
      // Expires the dead gateway's lease, so that the test need not wait for its end.
      await stores.db
        .updateTable("leases")
        .set({ expiresAt: new Date(0) })
        .where("name", "like", "resume.%")
        .execute();
      await until(async () => (await onTopic(channel)).length >= 120, { everyMs: 50 });
      expect([...(await onTopic(channel))].sort((a, b) => a - b)).toEqual(range(0, 120));
    },
  );
});

const GRACE_S = 3_600;

/** Advances the database's expiry times and this process's clock: each gateway caches when an address expires. */
async function passTime(seconds: number): Promise<void> {
  const expiresAt = sql<Date>`expires_at - make_interval(secs => ${seconds})`;
  await stores.db.updateTable("channelAddresses").set({ expiresAt }).execute();
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + seconds * 1_000);
  // The change feed uses the same clock: a gateway rejects deliveries until it has read the feed again.
  for (const gateway of [one, other]) await until(async () => (await fetch(`${gateway.origin}/readyz`)).ok);
}

describe("a channel with a new address", () => {
  it("accepts deliveries at its old address until the grace period ends, and detects duplicates across both addresses", async () => {
    const first = await install();
    expect((await send(other, first, 1)).published).toBe(1);
    const second = await act(one, first, "rotate", { graceSeconds: GRACE_S });
    expect(second).toMatchObject({ uid: "in", appId: first.appId, state: "active" });
    expect(second.id).not.toBe(first.id);
    expect(second.url).toContain(second.id);
    const third = await act(other, second, "rotate");
    for (const channel of [first, second, third]) {
      for (const gateway of [one, other]) expect((await send(gateway, channel, 1)).duplicates).toBe(1);
    }
    await passTime(GRACE_S);
    for (const gateway of [one, other]) expect(await statusOf(gateway, first)).toBe(404);
    expect((await send(one, second, 1)).duplicates).toBe(1);
    expect((await send(other, third, 2)).published).toBe(1);
    expect(await onTopic(first)).toEqual([1, 2]);
    await expect(one.api("GET", `/apps/${first.appId}/channels/${second.id}`)).rejects.toThrow("404");
  });

  it("rejects deliveries at all old addresses immediately if there is no grace period", async () => {
    const first = await install();
    const second = await act(one, first, "rotate");
    for (const gateway of [one, other]) await send(gateway, first, 1);
    const third = await act(one, second, "rotate", { graceSeconds: 0 });
    for (const channel of [first, second]) expect(await statusOf(one, channel)).toBe(404);
    for (const channel of [first, second]) {
      await until(async () => (await statusOf(other, channel)) === 404);
    }
    expect((await send(other, third, 1)).duplicates).toBe(1);
  });
});
