// A reader process for tests that kill it. Prints a line `<topic> <data> <attempt>` for each handled event.
import { setTimeout as delay } from "node:timers/promises";
import { type ConsumerOptions, createConsumer } from "../../src/consumer/consumer.ts";

const [options = "{}", handleMs = "0"] = process.argv.slice(2);
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.stdout.write("ready\n");
await createConsumer<number>(JSON.parse(options) as ConsumerOptions).run(
  async ({ data }, { topic, attempt }) => {
    await delay(Number(handleMs));
    process.stdout.write(`${topic} ${data} ${attempt}\n`);
  },
  { signal: stop.signal },
);
