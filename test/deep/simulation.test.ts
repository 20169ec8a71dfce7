/** Runs `HISTORIES` (default 2,000) simulated histories starting at seed `SEED` (default: after those of `test/simulation`). */
import { expect, it } from "vitest";
import { runHistory } from "../simulation/history.ts";
import { installVirtualTime } from "../simulation/virtual-time.ts";
import { opened } from "../support/opened.ts";
import { createTestRedis } from "../support/test-redis.ts";

const redis = opened(createTestRedis);
const histories = Number(process.env.HISTORIES ?? 2_000);
const first = Number(process.env.SEED ?? 13);

it(`sources neither lose, duplicate nor delay events in ${histories} simulated runs with random faults, starting with seed ${first}`, async () => {
  using _ = installVirtualTime();
  let events = 0;
  let faults = 0;
  for (let seed = first; seed < first + histories; seed++) {
    const result = await runHistory(seed, redis.client);
    expect(result).toMatchObject({ seed, violations: [] });
    events += result.events;
    for (const count of Object.values(result.faults)) faults += count;
  }
  console.log(
    `simulation: ${histories} histories, ${faults} faults, ${events} events, from seed ${first} on`,
  );
});
