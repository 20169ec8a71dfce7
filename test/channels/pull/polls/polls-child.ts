/** A worker process for the test to kill. It starts to poll one source, reports that, and never ends. The optional fourth argument is the source's app. */
import { openTestRedis } from "../../../bus/support.ts";
import { often, startPollsWorker, wanted } from "./polls-support.ts";

// Exits when the parent process is gone.
process.stdin.resume().on("end", () => process.exit());
const [url = "", queueName = "", channel = "", appId] = process.argv.slice(2);
const worker = startPollsWorker(
  await openTestRedis(url),
  async () => {
    process.stdout.write("polling\n");
    return new Promise(() => {});
  },
  { queueName },
);
worker.engine.sync([wanted(Number(channel), appId === undefined ? { schedule: often } : { appId })]);
