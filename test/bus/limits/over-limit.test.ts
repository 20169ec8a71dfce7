import { expect, it } from "vitest";
import { createWriteOverLimit, startOverLimit } from "../../../src/bus/limits/over-limit.ts";
import { createLog } from "../../../src/log.ts";
import { openedBus } from "../support.ts";

const { redis } = openedBus();
const log = createLog({ level: "silent" });

it("a starting gateway reads from Redis which organizations are over their storage limit", async () => {
  await createWriteOverLimit(redis)(["org_full"], 60_000);
  await using overLimit = await startOverLimit({ redis, log, everyMs: 3_600_000 });
  expect([overLimit.has("org_full"), overLimit.has("org_other"), overLimit.count()]).toEqual([
    true,
    false,
    1,
  ]);
});
