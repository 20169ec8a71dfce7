import { HTTP } from "cloudevents";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { type GivenChannel, givenChannel } from "../support/channels.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { type Received, startHandlerServer } from "../support/handler-server.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const gateway = givenGateway(
  { INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
  { handlersTiming: { firstRetryMs: 50, mostRetryMs: 200 } },
);
const handler = opened(startHandlerServer);

interface Subscribed {
  readonly path: string;
  readonly secret: string;
  readonly topic: string;
  readonly send: GivenChannel["send"];
}

/** Installs an app with one channel, sends it these events, and creates a subscription whose handler is at this path. */
async function subscribe(
  path: string,
  settings: object = {},
  earlier: readonly object[] = [],
): Promise<Subscribed> {
  const { appPath, send } = await givenChannel(gateway, {
    events: [{ type: "e", idPath: "$.id", keyPath: "$.customer" }],
  });
  for (const event of earlier) await send(event);
  const subscription = await gateway.api<{ id: string; topics: string[]; handler: { secret: string } }>(
    "POST",
    `${appPath}/events/subscribe`,
    { eventUid: "*", startAt: "earliest", handler: { url: handler.urlOf(path), ...settings } },
  );
  return {
    path: `${appPath}/subscriptions/${subscription.id}`,
    secret: subscription.handler.secret,
    topic: subscription.topics[0] ?? "",
    send,
  };
}

const NOTHING: Received = { headers: {}, body: "", path: "" };

const at = (path: string): readonly Received[] => handler.at(path);

describe("a handler", () => {
  it("receives each event as a signed request that the `standardwebhooks` library verifies and the `cloudevents` library parses", async () => {
    const { send, secret } = await subscribe("/taken");
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await send({ id: "größe 1", n: 1 }, { traceparent });
    await until(() => at("/taken").length === 1);
    const [{ headers, body } = NOTHING] = at("/taken");
    expect(new Webhook(secret).verify(body, headers)).toEqual({ id: "größe 1", n: 1 });
    expect(() => new Webhook(`whsec_${Buffer.alloc(32).toString("base64")}`).verify(body, headers)).toThrow();
    const event = HTTP.toEvent<{ n: number }>({ headers, body });
    expect(event).toMatchObject({ type: "e", data: { n: 1 }, datacontenttype: "application/json" });
    expect(decodeURIComponent(headers["ce-id"] ?? "")).toBe("größe 1");
    expect([headers.traceparent, headers["ce-traceparent"]]).toEqual([traceparent, traceparent]);
  });

  it("has a secret that the API returns only once", async () => {
    const { path, secret } = await subscribe("/secret");
    expect(secret).toMatch(/^whsec_/);
    expect(await gateway.api("GET", path)).toMatchObject({ handler: { secret: null, timeoutMs: 10_000 } });
  });

  it("receives an event again after a failed attempt, with the same id, without blocking the consumer group", async () => {
    handler.answers.set("/fails", (_, times) => ({ status: times === 1 ? 500 : 204 }));
    const { path, send, topic } = await subscribe("/fails");
    await send({ id: "1" });
    await until(() => at("/fails").length > 0);
    // The failed event waits in the retry queue, so the group has no pending entry.
    await until(
      async () =>
        Number((await gateway.stores.client.xpending(topic, path.split("/").at(-1) ?? ""))[0]) === 0,
    );
    await until(() => at("/fails").length === 2);
    const ids = at("/fails").map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(1);
  });

  it("that responds 410 has its subscription paused, and receives the missed events after the subscription is resumed", async () => {
    let isGone = true;
    handler.answers.set("/gone", () => ({ status: isGone ? 410 : 200 }));
    const { path, send } = await subscribe("/gone", { ordered: true });
    await send({ id: "1" });
    await until(async () => (await gateway.api<{ state: string }>("GET", path)).state === "paused");
    isGone = false;
    const before = at("/gone").length;
    await send({ id: "2" });
    await gateway.api("POST", `${path}/resume`, {});
    await until(() => at("/gone").length >= before + 2);
    expect(
      at("/gone")
        .slice(-2)
        .map(({ body }) => JSON.parse(body).id),
    ).toEqual(["1", "2"]);
  });

  it("that always fails is called less often than once per event, and its subscription is in state `failing`", async () => {
    handler.answers.set("/down", () => ({ status: 503 }));
    const { path, send } = await subscribe("/down", { concurrency: 1 });
    for (let id = 0; id < 30; id++) await send({ id: String(id) });
    await until(async () => (await gateway.api<{ state: string }>("GET", path)).state === "failing");
    expect(at("/down").length).toBeLessThan(15);
  });

  it("with `ordered` set receives the events of a topic one by one, even after a failed attempt", async () => {
    handler.answers.set("/ordered", ({ body }, times) => ({
      status: JSON.parse(body).id === "3" && times < 3 ? 500 : 200,
    }));
    const { send } = await subscribe("/ordered", { ordered: true });
    for (let id = 0; id < 8; id++) await send({ id: String(id) });
    await until(() => at("/ordered").length >= 10);
    expect(at("/ordered").map(({ body }) => JSON.parse(body).id)).toEqual([..."0123334567"]);
  });

  it('with `ordered: "key"` receives the events of a key one by one, and other keys meanwhile', async () => {
    let isFixed = false;
    handler.answers.set("/keyed", ({ body }) => ({
      status: JSON.parse(body).id === "a1" && !isFixed ? 500 : 200,
    }));
    const { send } = await subscribe("/keyed", { ordered: "key" });
    const ids = (of: typeof at): string[] => of("/keyed").map(({ body }) => JSON.parse(body).id);
    for (const id of ["a1", "a2", "b1", "b2", "a3"]) await send({ id, customer: id[0] });
    await until(() => ids(at).includes("b2"));
    expect(ids(at).filter((id) => id !== "a1")).toEqual(["b1", "b2"]);
    const first = at("/keyed").find(({ body }) => JSON.parse(body).id === "a1");
    expect(first?.headers["ce-partitionkey"]).toBe("a");
    isFixed = true;
    await until(() => ids(at).includes("a3"));
    expect([...new Set(ids(at))].filter((id) => id.startsWith("a"))).toEqual(["a1", "a2", "a3"]);
  });

  describe("with `batch` set", () => {
    // The events exist before the subscription. On a busy machine, later ones could miss the first batch.
    const batch = { maxEvents: 4, maxWaitMs: 300 };
    const idsOf = (received: Received): string[] =>
      JSON.parse(received.body).map(({ data }: { data: { id: string } }) => data.id);

    it("receives several events in one signed request, and again only those that its response lists as failed", async () => {
      handler.answers.set("/batch", (received) => {
        const isFirst = idsOf(received).length > 1;
        return { status: 200, body: JSON.stringify({ failed: isFirst ? [{ id: idsOf(received)[1] }] : [] }) };
      });
      const events = ["1", "2", "3", "4"].map((id) => ({ id }));
      const { path, secret } = await subscribe("/batch", { batch }, events);
      await until(() => at("/batch").flatMap(idsOf).length >= 5);
      const [first = NOTHING, again = NOTHING] = at("/batch");
      expect(first.headers["content-type"]).toContain("application/cloudevents-batch+json");
      expect(new Webhook(secret).verify(first.body, first.headers)).toHaveLength(4);
      expect(idsOf(again)).toEqual([idsOf(first)[1]]);
      const { lastError, handler: shown } = await gateway.api<{
        lastError: { code: string };
        handler: object;
      }>("GET", path);
      expect(lastError.code).toBe("rejectedInBatch");
      expect(shown).toMatchObject({ batch: { maxEvents: 4, maxBytes: 1_048_576, maxWaitMs: 300 } });
    });

    it("receives all events again if its response is an error, or names events that are not in the batch", async () => {
      let requests = 0;
      handler.answers.set("/batch-error", () => {
        requests++;
        if (requests === 1) return { status: 503 };
        return { status: 200, body: requests === 2 ? '{"failed": ["x"]}' : "" };
      });
      const settings = { batch: { ...batch, maxEvents: 2 }, ordered: true };
      await subscribe("/batch-error", settings, [{ id: "1" }, { id: "2" }]);
      await until(() => at("/batch-error").length === 4);
      expect(at("/batch-error").map(idsOf)).toEqual([["1", "2"], ["1"], ["1"], ["2"]]);
    });

    it('and `ordered: "key"` receives later events of a failed key again, after the failed event', async () => {
      let requests = 0;
      handler.answers.set("/batch-keys", ({ body }) => {
        requests++;
        const failed = requests === 1 ? [{ source: JSON.parse(body)[0].source, id: "a1" }] : [];
        return { status: 200, body: JSON.stringify({ failed }) };
      });
      const events = ["a1", "a2", "b1", "a3"].map((id) => ({ id, customer: id[0] }));
      await subscribe("/batch-keys", { batch, ordered: "key" }, events);
      await until(() => at("/batch-keys").flatMap(idsOf).length >= 7);
      const [first = [], ...others] = at("/batch-keys").map(idsOf);
      expect(first.toSorted()).toEqual(["a1", "a2", "a3", "b1"]);
      expect(others.flat()).toEqual(["a1", "a2", "a3"]);
      expect(others[0]).toEqual(["a1"]);
    });
  });

  it("cannot be set with an invalid URL, an invalid secret or an unknown connection", async () => {
    await expect(subscribe("/x", { url: "ftp://h/" })).rejects.toThrow("handler.url");
    await expect(subscribe("/x", { ordered: "topic" })).rejects.toThrow('true, false or \\"key\\"');
    await expect(subscribe("/x", { secret: "short" })).rejects.toThrow("handler.secret");
    await expect(subscribe("/x", { connectionId: "con_x" })).rejects.toThrow("404");
  });
});
