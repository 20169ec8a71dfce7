// A reader process for tests that kill it. Prints `<topic> <data> start` before each attempt, and `done` after it.
// Events whose number is in the second argument always fail.
import { setTimeout as delay } from "node:timers/promises";
import { type ConsumerOptions, createConsumer } from "../../src/consumer/consumer.ts";

const [options = "{}", failing = "[]"] = process.argv.slice(2);
const broken = new Set(JSON.parse(failing) as number[]);
process.stdout.write("ready\n");
await createConsumer<number>({ ...(JSON.parse(options) as ConsumerOptions), onProblem() {} }).run(
  async ({ data = -1 }, { topic }) => {
    process.stdout.write(`${topic} ${data} start\n`);
    await delay(2);
    if (broken.has(data)) throw new Error("this event always fails");
    process.stdout.write(`${topic} ${data} done\n`);
  },
);
