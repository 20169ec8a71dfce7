/** A worker in a process of its own, to be killed: it begins to poll one source, says so, and does not end. */
import { openTestRedis } from "../../../bus/support.ts";
import { often, startPollsWorker, wanted } from "./polls-support.ts";

// Nobody is left who could kill it.
process.stdin.resume().on("end", () => process.exit());
const [url = "", queueName = "", channel = ""] = process.argv.slice(2);
const worker = startPollsWorker(
  await openTestRedis(url),
  async () => {
    process.stdout.write("polling\n");
    return new Promise(() => {});
  },
  { queueName },
);
worker.engine.sync([wanted(Number(channel), { schedule: often })]);
