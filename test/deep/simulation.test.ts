/** As test/simulation, for more histories: `HISTORIES` of them (default 2,000), from `SEED` on (default: after those). */
import { expect, it } from "vitest";
import { runHistory } from "../simulation/history.ts";
import { installVirtualTime } from "../simulation/virtual-time.ts";
import { opened } from "../support/opened.ts";
import { createTestRedis } from "../support/test-redis.ts";

const redis = opened(createTestRedis);
const histories = Number(process.env.HISTORIES ?? 2_000);
const first = Number(process.env.SEED ?? 201);

it(`sources lose, double and hold up nothing in ${histories} histories from seed ${first} on`, async () => {
  using _ = installVirtualTime();
  let events = 0;
  let faults = 0;
  for (let seed = first; seed < first + histories; seed++) {
    const told = await runHistory(seed, redis.client);
    expect(told).toMatchObject({ seed, violations: [] });
    events += told.events;
    for (const count of Object.values(told.faults)) faults += count;
  }
  console.log(
    `simulation: ${histories} histories, ${faults} faults, ${events} events, from seed ${first} on`,
  );
});
