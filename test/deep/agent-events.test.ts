import { setTimeout as wait } from "node:timers/promises";
import { expect, it } from "vitest";
import { seeded } from "../faults/rig.ts";
import { type Message, startCallbackServer } from "../mcp/callback-server.ts";
import { type GivenChannel, givenChannel } from "../support/channels.ts";
import { createTestStores } from "../support/gateway.ts";
import { API_KEY, type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

/** Number of kills. Set `INLET_TEST_KILLS=30` for a long run, which takes two minutes on an idle machine. */
const KILLS = Number(process.env.INLET_TEST_KILLS ?? 6);
const EVENTS = 400 * KILLS;
const EVENTS_PER_DELIVERY = 20;
const HEADERS = {
  authorization: `Bearer ${API_KEY}`,
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": "2025-11-25",
};

interface Polled {
  readonly events: readonly { readonly eventId: string; readonly data: { readonly n: number } }[];
  readonly cursor: string;
  readonly truncated: boolean;
  readonly hasMore: boolean;
}

/** Calls a method of the events extension. Returns `undefined` if the gateway did not respond with a result. */
async function call<R>({ origin }: GatewayProcess, method: string, params: object): Promise<R | undefined> {
  try {
    const response = await fetch(`${origin}/mcp`, {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const text = await response.text();
    return JSON.parse(/^data: (.+)$/m.exec(text)?.[1] ?? text).result;
  } catch {
    return undefined;
  }
}

/** Two gateways that are killed in turn while a provider sends numbered events. */
interface Rig extends AsyncDisposable {
  readonly seed: number;
  readonly random: () => number;
  readonly channel: GivenChannel;
  readonly anyGateway: () => GatewayProcess;
  /** Sends all events, spread over the kills. */
  readonly sendAll: () => Promise<void>;
  readonly killAll: () => Promise<void>;
}

async function startRig(env: Readonly<Record<string, string>> = {}): Promise<Rig> {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = seeded(seed);
  await using opening = new AsyncDisposableStack();
  const stores = opening.use(await createTestStores());
  const gateways: GatewayProcess[] = [];
  opening.defer(async () => {
    await Promise.all(gateways.map((gateway) => gateway[Symbol.asyncDispose]()));
  });
  const start = () => startGatewayProcess({ ...stores.env, ...env });
  for (let i = 0; i < 2; i++) gateways.push(await start());
  const anyGateway = (): GatewayProcess => gateways[Math.floor(random() * 2)] as GatewayProcess;
  const channel = await givenChannel(anyGateway(), {
    uid: "in",
    config: { itemsPath: "$[*]", retention: { maxEntries: 2 * EVENTS } },
    events: [{ type: "tick", idPath: "$.n", agents: true }],
  });
  let kills = 0;

  /** Sends a delivery until a gateway has confirmed it, as a provider does. */
  async function send(body: string): Promise<void> {
    for (;;) {
      const sent = await fetch(`${anyGateway().origin}${channel.hookPath}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      }).catch(() => undefined);
      if (sent?.status === 200) return;
      await wait(20);
    }
  }

  const owned = opening.move();
  return {
    seed,
    random,
    channel,
    anyGateway,
    async sendAll() {
      for (let n = 0; n < EVENTS; n += EVENTS_PER_DELIVERY) {
        await send(JSON.stringify(Array.from({ length: EVENTS_PER_DELIVERY }, (_, i) => ({ n: n + i }))));
        while (n / EVENTS > (kills + 1) / KILLS) await wait(10);
      }
    },
    async killAll() {
      for (; kills < KILLS; kills++) {
        await wait(random() * 300);
        const index = kills % 2;
        const dying = gateways[index] as GatewayProcess;
        dying.kill("SIGKILL");
        await dying.exited;
        gateways[index] = await start();
      }
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const ALL = Array.from({ length: EVENTS }, (_, n) => n);

it("gives an agent each event once by its cursor, while gateways and the agent are killed", async () => {
  await using rig = await startRig();
  const { random, anyGateway, channel } = rig;
  const received: Polled["events"][number][] = [];
  let crashes = 0;
  let isSending = true;
  let sending: Promise<void> | undefined;
  async function receiveAll(): Promise<void> {
    const params = { name: `${channel.appId}.in.tick`, maxEvents: 100 };
    const poll = (more: object = {}) => call<Polled>(anyGateway(), "events/poll", { ...params, ...more });
    let cursor: string | undefined;
    while (cursor === undefined) cursor = (await poll())?.cursor;
    sending = rig.sendAll().then(() => {
      isSending = false;
    });
    for (let isDone = false; !isDone; ) {
      const wasSending = isSending;
      const polled = await poll({ cursor });
      // An agent that is killed before it has stored the result polls again with its stored cursor.
      const isCrashed = random() < 0.1;
      if (isCrashed) crashes++;
      if (polled === undefined || isCrashed) {
        await wait(10);
        continue;
      }
      expect(polled.truncated).toBe(false);
      received.push(...polled.events);
      ({ cursor } = polled);
      isDone = !wasSending && !polled.hasMore;
    }
  }

  await Promise.all([receiveAll(), rig.killAll()]);
  await sending;
  console.log(
    `agent events: seed ${rig.seed}, ${EVENTS} events, ${KILLS} kills, ${crashes} crashes of the agent`,
  );
  expect(received.map(({ data }) => data.n).toSorted((a, b) => a - b)).toEqual(ALL);
  expect(new Set(received.map(({ eventId }) => eventId)).size).toBe(EVENTS);
});

it("sends all events in order to the callback URL of an agent, while gateways are killed and the agent fails", async () => {
  await using rig = await startRig({ INLET_ALLOW_NETWORKS: "127.0.0.0/8" });
  await using callbacks = await startCallbackServer();
  const { random, anyGateway, channel } = rig;
  const path = "/agent";
  let failures = 0;
  callbacks.react.set(path, ({ body }) => {
    if (!("eventId" in body) || random() > 0.002) return undefined;
    failures++;
    return { status: 503 };
  });
  const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
  const delivery = { mode: "webhook", url: callbacks.urlOf(path), secret };
  const subscribe = () =>
    call(anyGateway(), "events/subscribe", { name: `${channel.appId}.in.tick`, delivery });
  while ((await subscribe()) === undefined) await wait(20);
  const numberOf = ({ body }: Message) => (body.data as { readonly n: number }).n;
  await Promise.all([rig.sendAll(), rig.killAll()]);
  await until(() => new Set(callbacks.events(path).map(numberOf)).size === EVENTS);
  const numbers = callbacks.events(path).map(numberOf);
  console.log(
    `agent webhooks: seed ${rig.seed}, ${EVENTS} events, ${KILLS} kills, ${failures} failures of the agent, ${numbers.length - EVENTS} events sent again`,
  );
  // An event is sent again if a gateway is killed before it has noted the response. No event overtakes another.
  expect([...new Set(numbers)]).toEqual(ALL);
  expect(callbacks.at(path).map(({ body }) => body.type ?? "event")).not.toContain("gap");
});
