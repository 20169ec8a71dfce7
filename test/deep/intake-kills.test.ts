import { expect, it } from "vitest";
import { post } from "../support/deliver.ts";
import { createTestStores, fieldsOn } from "../support/gateway.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { createIntake, type Install } from "../support/intakes.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const ORGANIZATIONS = 10;
const INSTALLS_EACH = 10;
const KILLS = 3;
const BATCHES_PER_KILL = 60;
const BATCH_ITEMS = 12;
const AT_ONCE = 6;
/** Keys that are claimed only while deliveries arrive, so that their first items are held. */
const LATE_KEYS = 10;

const stores = opened(createTestStores);
const start = (): Promise<GatewayProcess> => startGatewayProcess(stores.env);

it("delivers each item once and to its own install only, although gateways are killed", async () => {
  const workers = [await start(), await start()];
  try {
    const [first] = workers;
    if (first === undefined) throw new Error("there is no gateway");
    const intake = await createIntake(first);
    const path = new URL(intake.url).pathname;
    const installs: Install[] = [];
    for (let n = 0; n < ORGANIZATIONS; n++) {
      const tenant = await intake.addOrganization(`Tenant ${n}`);
      for (let m = 0; m < INSTALLS_EACH; m++) installs.push(await tenant.install());
    }
    const late = installs.slice(0, LATE_KEYS);
    for (const [n, install] of installs.entries())
      if (!late.includes(install)) await intake.setKeys(install, [`key ${n}`]);

    const expected = installs.map((): string[] => []);
    let batches = 0;
    let retries = 0;
    const nextBatch = () => {
      const batch = batches++;
      const events = Array.from({ length: BATCH_ITEMS }, (_, n) => {
        const place = (batch * 7 + n * 11) % installs.length;
        const id = `${batch}.${n}`;
        expected[place]?.push(id);
        return { id, team: `key ${place}`, secret: `of install ${place}` };
      });
      return JSON.stringify({ events });
    };
    const send = async (text: string): Promise<void> => {
      await until(async () => {
        const worker = workers[retries % workers.length];
        const sent = await post(`${worker?.origin}${path}`, text, intake.signed(text)).catch(() => undefined);
        if (sent?.status !== 200) retries++;
        return sent?.status === 200;
      });
    };

    for (let kill = 0; kill < KILLS; kill++) {
      let left = BATCHES_PER_KILL;
      const senders = Array.from({ length: AT_ONCE }, async () => {
        while (left-- > 0) await send(nextBatch());
      });
      await until(async () => left < BATCHES_PER_KILL / 2, { everyMs: 5 });
      const victim = workers.shift();
      victim?.kill("SIGKILL");
      await victim?.exited;
      workers.push(await start());
      await Promise.all(senders);
      const [owner] = workers;
      const claimed = late.splice(0, Math.ceil(LATE_KEYS / KILLS));
      for (const install of claimed) {
        const place = installs.indexOf(install);
        const keysPath = `/blueprints/${intake.blueprintId}/installs/${install.appId}/route-keys`;
        await owner?.api("PUT", keysPath, { keys: [`key ${place}`] });
      }
    }
    for (const [place, install] of installs.entries()) {
      const ids = () => fieldsOn(stores, install.topic, "id");
      await until(async () => (await ids()).length >= (expected[place]?.length ?? 0), { everyMs: 50 });
      expect((await ids()).toSorted()).toEqual(expected[place]?.toSorted());
      const data = await fieldsOn(stores, install.topic, "data");
      expect(data.filter((text) => JSON.parse(text).team !== `key ${place}`)).toEqual([]);
    }
    const [last] = workers;
    // A held item is deleted after it was published.
    await until(async () => {
      const left = await last?.api<unknown[]>("GET", `/blueprints/${intake.blueprintId}/quarantine`);
      return left?.length === 0;
    });
    console.log(
      `intake: ${batches} batches, ${batches * BATCH_ITEMS} items, ${retries} retries, ${KILLS} kills`,
    );
  } finally {
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
});
