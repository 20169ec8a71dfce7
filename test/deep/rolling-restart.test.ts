import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const stores = opened(createTestStores);
const channel = opened(async () => {
  await using gateway = await startTestGateway(stores.env);
  return await givenChannel(gateway, { events: [{ type: "made", idPath: "$.id" }] });
});

interface Balancer extends AsyncDisposable {
  readonly origin: string;
  readonly add: (origin: string) => Promise<void>;
  /** Whether the balancer sends requests to this gateway. */
  readonly uses: (origin: string) => boolean;
}

/** Sends requests round-robin to the gateways that passed the last readiness check, over keep-alive or new connections. */
async function startBalancer({ keepAlive }: { readonly keepAlive: boolean }): Promise<Balancer> {
  const gateways = new Map<string, boolean>();
  const agent = new Agent({ keepAlive });
  const stopping = new AbortController();
  let turn = 0;

  async function checkReady(origin: string): Promise<void> {
    const isReady = await fetch(`${origin}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (gateways.has(origin)) gateways.set(origin, isReady);
  }

  const server = createServer((incoming, outgoing) => {
    const ready = [...gateways].filter(([, isReady]) => isReady).map(([origin]) => origin);
    const origin = ready[turn++ % ready.length];
    const sendBadGateway = (): void => void outgoing.writeHead(502).end();
    if (origin === undefined) return sendBadGateway();
    const options = { agent, method: incoming.method, headers: incoming.headers };
    const outbound = request(`${origin}${incoming.url}`, options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502);
      answer.pipe(outgoing);
    });
    outbound.on("error", sendBadGateway);
    incoming.pipe(outbound);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const checking = (async () => {
    while (!stopping.signal.aborted) {
      await Promise.all([...gateways.keys()].map(checkReady));
      await delay(500, undefined, { signal: stopping.signal }).catch(() => {});
    }
  })();
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async add(origin) {
      gateways.set(origin, false);
      await checkReady(origin);
    },
    uses: (origin) => gateways.get(origin) === true,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await checking;
      agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Pause between two deliveries of a sender. Without it, the senders would take CPU time from the gateways. */
const PAUSE_MS = 5;

/** Sends deliveries from four concurrent senders until disposed. */
function startSenders(origin: string): { readonly statuses: readonly number[] } & AsyncDisposable {
  const statuses: number[] = [];
  const stopping = new AbortController();
  const senders = Array.from({ length: 4 }, async (_, sender) => {
    for (let n = 0; !stopping.signal.aborted; n++) {
      const { status } = await fetch(`${origin}${channel.hookPath}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ id: `${origin} ${sender} ${n}` }),
      });
      statuses.push(status);
      await delay(PAUSE_MS);
    }
  });
  return {
    statuses,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(senders);
    },
  };
}

describe("a rolling restart behind a balancer that checks /readyz every half second", () => {
  it.each([
    { keepAlive: true },
    { keepAlive: false },
  ])("fails no request, with keep-alive connections: $keepAlive", async (options) => {
    await using balancer = await startBalancer(options);
    // Ends the drain delay as soon as its purpose is met: the balancer has seen that the gateway is not ready.
    const start = async () => {
      const left = (): Promise<void> => until(() => !balancer.uses(gateway.origin));
      const gateway = await startTestGateway(stores.env, { beforeClosing: left });
      await balancer.add(gateway.origin);
      return gateway;
    };
    await using running = new AsyncDisposableStack();
    const first = [await start(), await start()];
    await using senders = startSenders(balancer.origin);
    for (const gateway of first) {
      running.use(await start());
      await gateway[Symbol.asyncDispose]();
      const before = senders.statuses.length;
      await until(() => senders.statuses.length > before + 50);
    }
    await senders[Symbol.asyncDispose]();
    await running.disposeAsync();
    expect(new Set(senders.statuses)).toEqual(new Set([200]));
  });
});
