import { setTimeout as wait } from "node:timers/promises";
import { expect, it } from "vitest";
import { seeded } from "../faults/rig.ts";
import { givenChannel } from "../support/channels.ts";
import { createTestStores } from "../support/gateway.ts";
import { API_KEY, type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";

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

/** Calls `events/poll`. Returns `undefined` if the gateway did not respond with a result. */
async function poll({ origin }: GatewayProcess, params: object): Promise<Polled | undefined> {
  try {
    const response = await fetch(`${origin}/mcp`, {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "events/poll", params }),
    });
    const text = await response.text();
    return JSON.parse(/^data: (.+)$/m.exec(text)?.[1] ?? text).result;
  } catch {
    return undefined;
  }
}

it("gives an agent each event once by its cursor, while gateways and the agent are killed", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = seeded(seed);
  await using stack = new AsyncDisposableStack();
  const stores = stack.use(await createTestStores());
  const gateways: GatewayProcess[] = [];
  stack.defer(async () => {
    await Promise.all(gateways.map((gateway) => gateway[Symbol.asyncDispose]()));
  });
  for (let i = 0; i < 2; i++) gateways.push(await startGatewayProcess(stores.env));
  const anyGateway = (): GatewayProcess => gateways[Math.floor(random() * 2)] as GatewayProcess;
  const channel = await givenChannel(anyGateway(), {
    uid: "in",
    config: { itemsPath: "$[*]", retention: { maxEntries: 2 * EVENTS } },
    events: [{ type: "tick", idPath: "$.n", agents: true }],
  });

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

  let isSending = true;
  async function sendAll(): Promise<void> {
    for (let n = 0; n < EVENTS; n += EVENTS_PER_DELIVERY) {
      await send(JSON.stringify(Array.from({ length: EVENTS_PER_DELIVERY }, (_, i) => ({ n: n + i }))));
      // Spreads the deliveries over all kills.
      while (n / EVENTS > (kills + 1) / KILLS) await wait(10);
    }
    isSending = false;
  }

  let kills = 0;
  async function killAll(): Promise<void> {
    for (; kills < KILLS; kills++) {
      await wait(random() * 300);
      const index = kills % 2;
      const dying = gateways[index] as GatewayProcess;
      dying.kill("SIGKILL");
      await dying.exited;
      gateways[index] = await startGatewayProcess(stores.env);
    }
  }

  const received: Polled["events"][number][] = [];
  let crashes = 0;
  async function receiveAll(): Promise<void> {
    const params = { name: `${channel.appId}.in.tick`, maxEvents: 100 };
    let cursor: string | undefined;
    while (cursor === undefined) cursor = (await poll(anyGateway(), params))?.cursor;
    sending = sendAll();
    for (let isDone = false; !isDone; ) {
      const wasSending = isSending;
      const polled = await poll(anyGateway(), { ...params, cursor });
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

  let sending: Promise<void> | undefined;
  await Promise.all([receiveAll(), killAll()]);
  await sending;
  console.log(
    `agent events: seed ${seed}, ${EVENTS} events, ${kills} kills, ${crashes} crashes of the agent`,
  );
  const numbers = received.map(({ data }) => data.n);
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: EVENTS }, (_, n) => n));
  expect(new Set(received.map(({ eventId }) => eventId)).size).toBe(EVENTS);
});
