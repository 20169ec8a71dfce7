import { expect, it } from "vitest";
import { post } from "../support/deliver.ts";
import { createTestStores, fieldsOn } from "../support/gateway.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { createIntake, type Install } from "../support/intakes.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const GATEWAYS = 3;
const KEYS = 8;
const KILLS = 4;
/** Deliveries of all keys between two kills. */
const DELIVERIES_PER_KILL = 300;
/** A delivery has one to three items of its key. */
const MOST_ITEMS = 3;

const stores = opened(createTestStores);
const start = (): Promise<GatewayProcess> => startGatewayProcess(stores.env);

interface Sender {
  readonly key: string;
  readonly install: Install;
  /** Number of items that gateways have accepted with 200, in this order. */
  accepted: number;
}

it("publishes the items of each key in order of arrival, although the key is claimed meanwhile and gateways are killed", async () => {
  const workers = await Promise.all(Array.from({ length: GATEWAYS }, start));
  try {
    const [first] = workers;
    if (first === undefined) throw new Error("there is no gateway");
    const intake = await createIntake(first);
    const path = new URL(intake.url).pathname;
    const tenants = [await intake.addOrganization("Acme"), await intake.addOrganization("Globex")];
    const senders: Sender[] = [];
    for (let n = 0; n < KEYS; n++) {
      const install = await tenants[n % tenants.length]?.install();
      if (install === undefined) throw new Error("there is no organization");
      senders.push({ key: `key ${n}`, install, accepted: 0 });
    }
    let deliveries = 0;
    let retries = 0;
    let isOver = false;

    /** Sends the items of a key one after the other. The next delivery follows when a gateway has responded with 200. */
    async function sendAll(sender: Sender): Promise<void> {
      const { key } = sender;
      while (!isOver) {
        const count = 1 + (deliveries++ % MOST_ITEMS);
        const events = Array.from({ length: count }, (_, n) => ({
          id: String(sender.accepted + n),
          team: key,
        }));
        const text = JSON.stringify({ events });
        await until(async () => {
          const worker = workers[Math.floor(Math.random() * workers.length)];
          const sent = await post(`${worker?.origin}${path}`, text, intake.signed(text)).catch(
            () => undefined,
          );
          if (sent?.status !== 200) retries++;
          return sent?.status === 200;
        });
        sender.accepted += count;
      }
    }

    const claim = async (claimed: readonly Sender[]) => {
      for (const { key, install } of claimed) {
        const keysPath = `/blueprints/${intake.blueprintId}/installs/${install.appId}/route-keys`;
        await workers[0]?.api("PUT", keysPath, { keys: [key] });
      }
    };
    const unclaimed = [...senders];
    const sending = Promise.all(senders.map(sendAll));
    for (let kill = 0; kill < KILLS; kill++) {
      const before = deliveries;
      await until(async () => deliveries - before > DELIVERIES_PER_KILL, { everyMs: 5 });
      await claim(unclaimed.splice(0, KEYS / KILLS));
      // The victim receives deliveries until it dies, and may be publishing held ones.
      const victim = workers.at(-1);
      victim?.kill("SIGKILL");
      await victim?.exited;
      workers.unshift(await start());
      workers.pop();
    }
    isOver = true;
    await sending;
    for (const { install, accepted } of senders) {
      const ids = () => fieldsOn(stores, install.topic, "id");
      await until(async () => (await ids()).length >= accepted, { everyMs: 50 });
      expect(await ids()).toEqual(Array.from({ length: accepted }, (_, n) => String(n)));
    }
    const [last] = workers;
    await until(async () => {
      const left = await last?.api<unknown[]>("GET", `/blueprints/${intake.blueprintId}/quarantine`);
      return left?.length === 0;
    });
    console.log(`intake order: ${deliveries} deliveries, ${KEYS} keys, ${retries} retries, ${KILLS} kills`);
  } finally {
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
});
