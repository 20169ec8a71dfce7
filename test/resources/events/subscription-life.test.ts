import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runEngine } from "../../../src/consumer/engine.ts";
import { readOptions } from "../../../src/consumer/options.ts";
import { readEvent } from "../../../src/event/cloud-event.ts";
import { clearRemoval } from "../../../src/maintenance/clear-removal.ts";
import { givenChannel } from "../../support/channels.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);
afterEach(() => vi.useRealTimers());

interface Subscribed {
  readonly path: string;
  readonly id: string;
  readonly topic: string;
  readonly send: (...ids: number[]) => Promise<void>;
}

async function subscribe(): Promise<Subscribed> {
  const channel = await givenChannel(spine, { events: [{ type: "e", idPath: "$.id" }] });
  const { id, topics } = await spine.api.call.post(`${channel.appPath}/events/subscribe`, { eventUid: "*" });
  return {
    id,
    topic: topics[0],
    path: `${channel.appPath}/subscriptions/${id}`,
    async send(...ids) {
      for (const id of ids) await channel.send({ id });
    },
  };
}

/** Reads until the signal aborts. Returns the handled event ids and the number of idle rounds so far. */
function read(subscription: string, signal: AbortSignal) {
  const seen = { handled: [] as unknown[], idleRounds: 0 };
  const running = runEngine({
    settings: readOptions({ redis: spine.server.url, subscription }),
    connection: spine.redis,
    async idle(_, idleSignal) {
      seen.idleRounds++;
      await delay(1, undefined, { signal: idleSignal }).catch(() => {});
    },
    async handler({ fields }) {
      seen.handled.push(readEvent<{ id: number }>(fields).event.data?.id);
    },
    signal,
  });
  return { seen, running };
}

describe("a subscription", () => {
  it("is added to the change feed when it is paused, resumed, rewound or deleted", async () => {
    const { id, path } = await subscribe();
    const { db } = spine.api.database;
    const announced = async (): Promise<number> => {
      const rows = await db.selectFrom("changes").select("kind").where("key", "=", id).execute();
      return rows.length;
    };
    for (const [verb, body] of [
      ["pause", {}],
      ["resume", {}],
      ["rewind", { startAt: "earliest" }],
    ] as const) {
      const before = await announced();
      await spine.api.call.post(`${path}/${verb}`, body);
      expect({ verb, announced: await announced() }).toEqual({ verb, announced: before + 1 });
    }
    const before = await announced();
    await spine.api.call("DELETE", path);
    expect(await announced()).toBeGreaterThan(before);
  });

  it("sends no events to its readers from one second after a pause, and continues at the same position once resumed", async () => {
    // Readers check the subscription's state once a second. The fake clock triggers that check.
    vi.useFakeTimers({ toFake: ["performance"] });
    const { id, path, send } = await subscribe();
    const stop = new AbortController();
    const { seen, running } = read(id, stop.signal);
    /** Waits for three idle rounds, so that at least one of them both began and ended after the call. */
    const waitForRounds = async () => {
      const enough = seen.idleRounds + 3;
      await until(() => seen.idleRounds >= enough);
    };
    await send(1);
    await until(() => seen.handled.length === 1);
    const paused = await spine.api.call.post(`${path}/pause`);
    expect(paused).toMatchObject({ state: "paused", topics: [expect.any(String)] });
    vi.advanceTimersByTime(1_001);
    await waitForRounds();
    await send(2, 3, 4);
    await waitForRounds();
    expect(seen.handled).toEqual([1]);
    expect(await spine.api.call.get(path)).toMatchObject({ lag: 3 });
    expect(await spine.api.call.post(`${path}/resume`)).toMatchObject({ state: "active" });
    vi.advanceTimersByTime(1_001);
    await until(() => seen.handled.length === 4);
    stop.abort();
    await running;
    expect(seen.handled.toSorted()).toEqual([1, 2, 3, 4]);
    expect((await spine.api.call.get(path)).lag).toBe(0);
  });

  it("rejects a pause while it is paused, and a resume while it is active", async () => {
    const { path } = await subscribe();
    expect(await spine.api.call.expectRejection("POST", `${path}/resume`)).toMatchObject({ status: 409 });
    await spine.api.call.post(`${path}/pause`);
    expect(await spine.api.call.expectRejection("POST", `${path}/pause`)).toMatchObject({ status: 409 });
  });

  it("leaves no key in Redis if it is deleted while it is paused", async () => {
    const { id, path } = await subscribe();
    await spine.api.call.post(`${path}/pause`);
    expect(await spine.server.client.exists(`inlet:sub:${id}:paused`)).toBe(1);
    await spine.api.call.delete(path);
    await clearRemoval({ ...spine, ...spine.path }, { kind: "subscription", id, organizationId: "" });
    expect(await spine.server.client.keys(`inlet:sub:${id}*`)).toEqual([]);
  });
});

describe("rewinding a subscription", () => {
  it("moves its consumer group to another position, and returns how many pending entries were dropped", async () => {
    const { id, path, topic, send } = await subscribe();
    await send(1, 2, 3);
    await spine.server.client.xreadgroup("GROUP", id, "me", "COUNT", 2, "STREAMS", topic, ">");
    const rewind = (startAt: string) => spine.api.call.post(`${path}/rewind`, { startAt });
    expect(await rewind("earliest")).toMatchObject({ startAt: "earliest", dropped: 2, lag: 3 });
    expect(await rewind("now")).toMatchObject({ startAt: "now", dropped: 0, lag: 0 });
    expect(await rewind("2020-01-01T00:00:00Z")).toMatchObject({
      startAt: "2020-01-01T00:00:00.000Z",
      lag: 3,
    });
  });

  it("is rejected if the request has no valid start position", async () => {
    const { path } = await subscribe();
    for (const body of [{}, { startAt: "soon" }]) {
      expect(await spine.api.call.expectRejection("POST", `${path}/rewind`, body)).toEqual({
        status: 400,
        code: "invalid_parameters",
        paths: ["startAt"],
      });
    }
  });
});
