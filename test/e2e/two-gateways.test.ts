import { describe, expect, it } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import { givenChannel } from "../support/channels.ts";
import { post } from "../support/deliver.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const one = givenGateway();
const { stores } = one;
const gateways = [one, givenGateway({}, { stores })] as const;
const channel = opened(() => {
  const events = [{ type: "order.paid", typePath: "$.type", idPath: "$.id", payloadPath: "$.order" }];
  return givenChannel(one, { events });
});

const send = ({ origin }: { readonly origin: string }, body: unknown) =>
  post(`${origin}${channel.hookPath}`, body);

describe("two gateways on the same stores", () => {
  it("publish one entry for fifty concurrent deliveries with the same id", async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        send(gateways[i % 2 === 0 ? 0 : 1], { type: "order.paid", id: "o-1", order: { total: "9.90" } }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
    const outcomes: Outcome[] = answers.map(({ body }) => body);
    const [topic] = outcomes.flatMap(({ events }) => events.map((event) => event.topic));
    expect(await stores.client.xlen(topic ?? "")).toBe(1);
    expect(outcomes.filter(({ published }) => published === 1)).toHaveLength(1);
    const entries = new Set(outcomes.flatMap(({ events }) => events.map(({ entryId }) => entryId)));
    expect(entries.size).toBe(1);
  });

  it("quarantine a known id with different data, no matter which gateway received the first delivery", async () => {
    await send(gateways[0], { type: "order.paid", id: "o-2", order: { total: "1" } });
    const { body } = await send(gateways[1], { type: "order.paid", id: "o-2", order: { total: "2" } });
    expect(body).toMatchObject({ published: 0, quarantined: 1, quarantine: [{ reason: "id_conflict" }] });
  });

  it("apply a change of a channel on both gateways when one gateway received it", async () => {
    const [one, other] = gateways;
    const shipped = (id: string) => send(other, { type: "order.shipped", id, order: {} });
    expect((await shipped("s-0")).body.quarantine).toMatchObject([{ reason: "no_match" }]);
    const { path } = channel;
    const { events } = await one.api<{ events: unknown[] }>("GET", path);
    await one.api("PUT", path, {
      events: [...events, { type: "order.shipped", typePath: "$.type", idPath: "$.id" }],
    });
    let tries = 0;
    await until(async () => (await shipped(`s-${++tries}`)).body.published === 1);
  });

  it("let a consumer group read events from before and after the subscription was created", async () => {
    const subscription = await gateways[0].api<{ group: string; topics: string[] }>(
      "POST",
      `${channel.appPath}/events/subscribe`,
      { eventUid: "main:*", startAt: "earliest" },
    );
    await send(gateways[1], { type: "order.paid", id: "o-3", order: { total: "3" } });
    const { group, topics } = subscription;
    const read = await Promise.all(
      topics.map((topic) =>
        stores.client.xreadgroup("GROUP", group, "test", "COUNT", 100, "STREAMS", topic, ">"),
      ),
    );
    expect(JSON.stringify(read)).toContain('"o-1"');
    expect(JSON.stringify(read)).toContain('"o-3"');
  });

  it("publish a quarantined item when it is redriven after its event definition was fixed", async () => {
    const [gateway] = gateways;
    const broken = await send(gateway, { type: "order.paid", no: "m-1", order: { total: "4" } });
    expect(broken.body.quarantine).toMatchObject([{ reason: "id_missing" }]);
    const { path } = channel;
    const { events } = await gateway.api<{ events: { type: string }[] }>("GET", path);
    await gateway.api("PUT", path, {
      events: events.map((event) => (event.type === "order.paid" ? { ...event, idPath: "$.no" } : event)),
    });
    const id = broken.body.quarantine[0]?.id;
    const redriven = await gateway.api<{ status: string }>(
      "POST",
      `${channel.appPath}/quarantine/${id}/redrive`,
      {},
    );
    expect(redriven).toMatchObject({ status: "released" });
    await expect(gateway.api("GET", `${channel.appPath}/quarantine/${id}`)).rejects.toThrow("404");
  });

  it("give the same 404 response for an unknown address and a malformed address", async () => {
    const invented = `/hooks/${channel.hookPath.split("/").at(-1)?.replace(/.{4}$/, "0000")}`;
    for (const path of [invented, "/hooks/x", "/hooks/%00"]) {
      const response = await fetch(`${gateways[0].origin}${path}`, { method: "POST", body: "{}" });
      expect([path, response.status]).toEqual([path, 404]);
      expect(await response.json()).toMatchObject({ code: "not_found" });
    }
  });
});

describe("a gateway killed with -9", () => {
  it("leaves its published ids in Redis, so that another gateway still detects duplicates", async () => {
    await using killed = await startGatewayProcess(stores.env);
    const sent = await send(killed, { type: "order.shipped", id: "k-1", order: {} });
    expect(sent.body.published).toBe(1);
    killed.kill("SIGKILL");
    await killed.exited;
    const again = await send(gateways[1], { type: "order.shipped", id: "k-1", order: {} });
    expect(again.body.duplicates).toBe(1);
    expect(again.body.events[0]?.entryId).toBe(sent.body.events[0]?.entryId);
  });
});
