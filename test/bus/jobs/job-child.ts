/** A worker in a separate process, for kill tests. Prints the id of each job that it starts, and never finishes one. */

import { openJobQueue } from "../../../src/bus/jobs/job-queue.ts";
import { parseRedisAddresses } from "../../../src/lib/addresses/redis-address.ts";
import { createLog } from "../../../src/log.ts";

// Exits when the parent process is gone.
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
