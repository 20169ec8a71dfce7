import { createHmac } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { quarantineBudgetKey } from "../../src/bus/keys.ts";
import { QUARANTINE_LIMITS } from "../../src/bus/quarantine/quarantine-record.ts";
import { hasAddress } from "../../src/data/channels/address-columns.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createLog } from "../../src/log.ts";
import {
  type PauseDrainer,
  type PauseDrainerDeps,
  startPauseDrainer,
} from "../../src/maintenance/pause-drainer.ts";
import { createTestChanges } from "../support/changes.ts";
import { type ChannelInput, type GivenChannel, givenChannel, numberOf } from "../support/channels.ts";
import { listEntries } from "../support/entries.ts";
import { opened } from "../support/opened.ts";
import { startTestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const TICK = { type: "tick", idPath: "$.n" };
const timing = { tickMs: 20, leaseMs: 3_600_000, lingerMs: 100 };

const spine = opened(startTestSpine);

let drainers: PauseDrainer[] = [];
afterEach(async () => {
  await Promise.all(drainers.map((drainer) => drainer[Symbol.asyncDispose]()));
  drainers = [];
});

function start(instead: Partial<PauseDrainerDeps> = {}): PauseDrainer {
  const { quarantine, pauses, drainPaused, findCompiledChannel } = spine.path;
  const drainer = startPauseDrainer({
    db: spine.api.database.db,
    quarantine,
    pauses,
    drainPaused,
    findCompiledChannel,
    timing,
    changes: createTestChanges(),
    log: createLog({ level: "silent" }),
    ...instead,
  });
  drainers.push(drainer);
  return drainer;
}

interface Installed extends GivenChannel {
  readonly topic: string;
  readonly pause: () => Promise<void>;
  readonly resume: () => Promise<void>;
}

async function install(input: ChannelInput = {}): Promise<Installed> {
  const channel = await givenChannel(spine, { events: [TICK], ...input });
  const act = async (what: string) => {
    const answer = await spine.api.call("POST", `${channel.path}/${what}`);
    expect([answer.status, answer.body.state]).toEqual([200, what === "pause" ? "paused" : "active"]);
  };
  return {
    ...channel,
    topic: channel.topicOf("tick"),
    pause: () => act("pause"),
    resume: () => act("resume"),
  };
}

/** Returns the numbers on the topic in the order of its entries. */
async function onTopic({ topic }: Installed): Promise<readonly number[]> {
  const entries = await listEntries(spine.redis, topic);
  return entries.map(({ fields }) => JSON.parse(fields.data ?? "").n);
}

async function records({ appId }: Installed): Promise<readonly { reason: string; detail: string }[]> {
  return (await spine.api.call("GET", `/apps/${appId}/quarantine?limit=200`)).body;
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

async function isOver({ id }: Installed): Promise<boolean> {
  const { db } = spine.api.database;
  const row = await db
    .selectFrom("channels")
    .select("pause")
    .where(hasAddress(spine.api.keyring, id))
    .executeTakeFirst();
  return row?.pause === null;
}

describe("a paused channel", () => {
  it("verifies each delivery, stores it in quarantine, and responds that it was accepted", async () => {
    const verification = { scheme: "hmac", name: "x-signature" };
    const installed = await install({
      config: { verification, itemsPath: "$.items[*]", secrets: [{ value: "s3cret" }] },
    });
    await installed.pause();
    const body = '{"items":[{"n":1},{"n":2}]}';
    const signature = createHmac("sha256", "s3cret").update(body).digest("hex");
    expect(await spine.deliver(installed.id, body, { "x-signature": "00" })).toMatchObject({
      kind: "unverified",
    });
    const outcome = await installed.send(body, { "x-signature": signature });
    expect(outcome).toMatchObject({ received: 1, published: 0, quarantined: 1, events: [] });
    expect(outcome.quarantine).toMatchObject([{ reason: "paused" }]);
    const id = outcome.quarantine[0]?.id;
    const { body: kept } = await spine.api.call("GET", `/apps/${installed.appId}/quarantine/${id}`);
    expect(kept).toMatchObject({ reason: "paused", item: null, body });
    expect(kept.headers).not.toHaveProperty("x-signature");
    expect(await onTopic(installed)).toEqual([]);

    start();
    await installed.resume();
    await until(async () => (await onTopic(installed)).length === 2);
    expect(await onTopic(installed)).toEqual([1, 2]);
    expect((await records(installed)).filter(({ reason }) => reason === "paused")).toEqual([]);
  });

  it("stays paused when its settings change, and ignores a second pause and a second resume", async () => {
    const installed = await install();
    const path = `/apps/${installed.appId}/channels/${installed.id}`;
    await installed.pause();
    const once = await spine.api.call("GET", path);
    await installed.pause();
    expect((await spine.api.call("GET", path)).body).toEqual(once.body);
    expect((await spine.api.call("PUT", path, { title: "new" })).body).toMatchObject({ state: "paused" });
    await installed.resume();
    await installed.resume();
    expect((await spine.api.call("PUT", path, { title: "newer" })).body).toMatchObject({ state: "active" });
  });

  it("rejects deliveries as unavailable once quarantine has reached its size limit, so that senders retry", async () => {
    const installed = await install();
    await installed.pause();
    const number = await numberOf(spine, installed.id);
    // Simulates a channel whose quarantine is almost full.
    const used = QUARANTINE_LIMITS.channelBytes - 100_000;
    await spine.server.client.hincrby(quarantineBudgetKey(installed.organizationId), `${number}:a`, used);
    const large = { n: 0, filler: "x".repeat(40_000) };
    for (const n of [1, 2]) await installed.send({ ...large, n });
    await expect(spine.deliver(installed.id, { ...large, n: 3 })).rejects.toThrow(UnavailableError);
    start();
    await installed.resume();
    await until(async () => (await onTopic(installed)).length === 2);
    // Deliveries that arrive before the buffer closes are buffered too.
    const third = { ...large, n: 3 };
    await until(async () => (await installed.send(third)).quarantine.length === 0);
    await until(async () => (await onTopic(installed)).length >= 3);
    expect(await onTopic(installed)).toHaveLength(3);
  });
});

describe("a resumed channel", () => {
  it("publishes the buffered deliveries in order of arrival, and then the new deliveries", async () => {
    const installed = await install();
    await installed.pause();
    for (const n of range(0, 210)) await installed.send({ n });
    start();
    await installed.resume();
    const statuses: number[] = [];
    const sendNext = async () => {
      const n = 210 + statuses.length;
      statuses.push((await installed.send({ n })).published);
    };
    while (statuses.at(-1) !== 1) await sendNext();
    for (let i = 0; i < 10; i++) await sendNext();
    const sent = 210 + statuses.length;
    await until(async () => (await onTopic(installed)).length === sent);
    expect(await onTopic(installed)).toEqual(range(0, sent));
    // The first one waited behind the buffer. After one has passed, all pass.
    expect(statuses).toEqual([...statuses].sort());
    await until(() => isOver(installed));
    expect(await records(installed)).toEqual([]);
  });

  it("publishes each buffered event once, even if a gateway stops halfway and another gateway continues", async () => {
    const installed = await install({ events: [{ type: "tick" }] });
    await installed.pause();
    for (const n of range(0, 210)) await installed.send({ n });
    await installed.resume();
    const { drainPaused } = spine.path;
    let pages = 0;
    const first = start({
      drainPaused: {
        ...drainPaused,
        async all(...args) {
          // Simulates a kill after the write and before the reply.
          if (++pages > 1) throw new UnavailableError("gone");
          await drainPaused.all(...args);
          throw new UnavailableError("gone");
        },
      },
    });
    await until(async () => (await onTopic(installed)).length === 100);
    await first[Symbol.asyncDispose]();
    start();
    start();
    await until(() => isOver(installed));
    expect(await onTopic(installed)).toEqual(range(0, 210));
  });

  it("publishes identical buffered deliveries without an id as often as they arrived", async () => {
    const installed = await install({ events: [{ type: "tick" }] });
    await installed.pause();
    for (const n of [1, 1, 2]) await installed.send({ n });
    start();
    await installed.resume();
    await until(() => isOver(installed));
    expect(await onTopic(installed)).toEqual([1, 1, 2]);
  });

  it("publishes a signed body that was buffered several times with different ids only once, and quarantines the copies as replayed", async () => {
    const verification = { scheme: "hmac", name: "x-signature", bindDedupe: "signedBytes" };
    const secrets = [{ value: "s3cret" }];
    const sendTo = ({ send }: Installed, n: number, id: string) => {
      const body = JSON.stringify({ n });
      const signature = createHmac("sha256", "s3cret").update(body).digest("hex");
      return send(body, { "x-signature": signature, "x-id": id });
    };
    const open = async (event: object) => {
      const installed = await install({ config: { verification, secrets }, events: [event] });
      await installed.pause();
      return installed;
    };
    const named = await open({ type: "tick", idPath: "$headers['x-id']" });
    const nameless = await open({ type: "tick" });
    for (const id of ["a", "b", "a", "c"]) await sendTo(named, 1, id);
    for (const n of [1, 1, 2]) await sendTo(nameless, n, "x");
    start();
    for (const installed of [named, nameless]) {
      await installed.resume();
      await until(() => isOver(installed));
    }
    expect(await onTopic(named)).toEqual([1]);
    expect((await records(named)).map(({ reason }) => reason)).toEqual(["replayed", "replayed"]);
    expect([await onTopic(nameless), await records(nameless)]).toEqual([[1, 2], []]);
  });

  it("quarantines invalid buffered items, even if its setting is to reject invalid deliveries, and publishes the remaining items", async () => {
    const installed = await install({ config: { onInvalid: "reject", itemsPath: "$[*]" } });
    await installed.pause();
    const tooMany = `[${"1,".repeat(1_000)}1]`;
    for (const body of ['[{"n":1}]', '[{"n":1,"x":1},{}]', "nonsense", tooMany, '[{"n":2}]']) {
      await installed.send(body);
    }
    start();
    await installed.resume();
    await until(() => isOver(installed));
    expect(await onTopic(installed)).toEqual([1, 2]);
    expect((await records(installed)).map(({ reason }) => reason).sort()).toEqual([
      "id_conflict",
      "id_missing",
      "invalid_body",
      "invalid_body",
    ]);
  });

  it("keeps the deliveries that are still buffered when it is paused again, and publishes them after the next resume", async () => {
    const installed = await install();
    await installed.pause();
    for (const n of range(0, 110)) await installed.send({ n });
    await installed.resume();
    const { drainPaused } = spine.path;
    const pausedAgain = Promise.withResolvers<void>();
    let pages = 0;
    start({
      drainPaused: {
        ...drainPaused,
        async all(...args) {
          await drainPaused.all(...args);
          if (++pages === 1) await installed.pause().then(pausedAgain.resolve, pausedAgain.reject);
        },
      },
    });
    await pausedAgain.promise;
    await installed.send({ n: 110 });
    expect(await onTopic(installed)).toEqual(range(0, 100));
    await installed.resume();
    await until(() => isOver(installed));
    expect(await onTopic(installed)).toEqual(range(0, 111));
  });

  it("processes buffered deliveries with the event definitions at the time of the resume", async () => {
    const installed = await install({ events: [] });
    await installed.pause();
    await installed.send({ n: 7 });
    const path = `/apps/${installed.appId}/channels/${installed.id}`;
    await spine.api.call("PUT", path, { events: [TICK] });
    start();
    await installed.resume();
    await until(async () => (await onTopic(installed)).length === 1);
  });

  it("publishes its buffered deliveries even while those of many other channels cannot be published", async () => {
    const failing = await Promise.all(range(0, 5).map(() => install()));
    const installed = await install();
    for (const one of [...failing, installed]) {
      await one.pause();
      await spine.send(one.id, { n: 1 });
      await one.resume();
    }
    const { drainPaused } = spine.path;
    let isMended = false;
    start({
      drainPaused: {
        ...drainPaused,
        async all(channel, ...rest) {
          if (!isMended && channel.identity.appId !== installed.appId) throw new UnavailableError("full");
          await drainPaused.all(channel, ...rest);
        },
      },
    });
    await until(async () => (await onTopic(installed)).length === 1);
    isMended = true;
    for (const one of failing) await until(() => isOver(one));
  });
});
