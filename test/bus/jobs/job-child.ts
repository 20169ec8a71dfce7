/** A worker in a process of its own, to be killed: it begins each job, says so, and ends none. */

import { openJobQueue } from "../../../src/bus/jobs/job-queue.ts";
import { parseRedisAddresses } from "../../../src/lib/addresses/redis-address.ts";
import { createLog } from "../../../src/log.ts";

// Nobody is left who could kill it.
process.stdin.resume().on("end", () => process.exit());
const [url = "", name = ""] = process.argv.slice(2);
const endpoint = { isCluster: false, seeds: parseRedisAddresses(url) };
const queue = openJobQueue({ redis: { endpoint }, name, log: createLog({ level: "silent" }) });
queue.work(
  async ({ id, scheduleId }) => {
    process.stdout.write(`${scheduleId ?? id}\n`);
    return new Promise(() => {});
  },
  { concurrency: 10, lockMs: 3_600_000 },
);
