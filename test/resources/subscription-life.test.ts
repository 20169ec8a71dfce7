import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createConsumer } from "../../src/consumer/consumer.ts";
import { clearRemoval } from "../../src/delivery/clear-removal.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

let spine: TestSpine;
beforeAll(async () => {
  spine = await startTestSpine();
});
afterAll(() => spine[Symbol.asyncDispose]());

interface Subscribed {
  readonly path: string;
  readonly id: string;
  readonly topic: string;
  readonly send: (...ids: number[]) => Promise<void>;
}

async function subscribe(): Promise<Subscribed> {
  const app = await spine.install({ uid: "main", kind: "webhook", events: [{ type: "e", idPath: "$.id" }] });
  const [{ id: channelId }] = app.channels;
  const { body } = await spine.api.call("POST", `/apps/${app.id}/events/subscribe`, { eventUid: "*" });
  return {
    id: body.id,
    topic: body.topics[0],
    path: `/apps/${app.id}/subscriptions/${body.id}`,
    async send(...ids) {
      for (const id of ids) await spine.send(channelId, { id });
    },
  };
}

/** Reads until its signal aborts; answers what it has handled so far. */
function read(subscription: string, signal: AbortSignal) {
  const handled: unknown[] = [];
  const consumer = createConsumer<{ id: number }>({ redis: spine.server.url, subscription });
  const running = consumer.run(({ data }) => void handled.push(data?.id), { signal });
  return { handled, running };
}

describe("a subscription that is paused", () => {
  it("gives its readers nothing, and goes on where it was when it is resumed", async () => {
    const { id, path, send } = await subscribe();
    const stop = new AbortController();
    const { handled, running } = read(id, stop.signal);
    await send(1);
    await until(() => handled.length === 1);
    const paused = await spine.api.call("POST", `${path}/pause`, {});
    expect([paused.status, paused.body.state, paused.body.topics.length]).toEqual([200, "paused", 1]);
    // A reader looks once a second, and waits for half of one in a read that it has begun.
    await until(
      async () => {
        await send(Math.random());
        const { body } = await spine.api.call("GET", path);
        return body.lag >= 3;
      },
      { everyMs: 100 },
    );
    const before = handled.length;
    const resumed = await spine.api.call("POST", `${path}/resume`, {});
    expect([resumed.status, resumed.body.state]).toEqual([200, "active"]);
    await until(() => handled.length >= before + 3);
    stop.abort();
    await running;
    expect((await spine.api.call("GET", path)).body.lag).toBe(0);
  });

  it("cannot be paused twice, nor resumed when it is active", async () => {
    const { path } = await subscribe();
    expect((await spine.api.call("POST", `${path}/resume`, {})).status).toBe(409);
    expect((await spine.api.call("POST", `${path}/pause`, {})).status).toBe(200);
    expect((await spine.api.call("POST", `${path}/pause`, {})).status).toBe(409);
  });

  it("leaves no key behind when it is deleted", async () => {
    const { id, path } = await subscribe();
    await spine.api.call("POST", `${path}/pause`, {});
    expect(await spine.server.client.exists(`inlet:sub:${id}:paused`)).toBe(1);
    await spine.api.call("DELETE", path);
    await clearRemoval(
      { ...spine, quarantine: spine.path.quarantine },
      { kind: "subscription", id, organizationId: "" },
    );
    expect(await spine.server.client.keys(`inlet:sub:${id}*`)).toEqual([]);
  });
});

describe("a rewind", () => {
  it("reads again from another place, and tells what was in hand", async () => {
    const { id, path, topic, send } = await subscribe();
    await send(1, 2, 3);
    await spine.server.client.xreadgroup("GROUP", id, "me", "COUNT", 2, "STREAMS", topic, ">");
    const rewound = await spine.api.call("POST", `${path}/rewind`, { startAt: "earliest" });
    expect(rewound.status).toBe(200);
    expect(rewound.body).toMatchObject({ startAt: "earliest", dropped: 2, lag: 3 });
    const now = await spine.api.call("POST", `${path}/rewind`, { startAt: "now" });
    expect(now.body).toMatchObject({ startAt: "now", dropped: 0, lag: 0 });
    const at = await spine.api.call("POST", `${path}/rewind`, { startAt: "2020-01-01T00:00:00Z" });
    expect(at.body).toMatchObject({ startAt: "2020-01-01T00:00:00.000Z", lag: 3 });
  });

  it("needs a place, and says so", async () => {
    const { path } = await subscribe();
    for (const body of [{}, { startAt: "soon" }, { startAt: "now", more: 1 }]) {
      const { status, body: error } = await spine.api.call("POST", `${path}/rewind`, body);
      expect([status, error.code]).toEqual([400, "invalid_parameters"]);
    }
  });
});
