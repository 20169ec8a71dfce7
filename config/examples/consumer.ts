// Reads the events of a subscription. Events of the same key arrive one after the other, and other keys are handled at the same time.
import { createConsumer } from "inlet-consumer";

const { REDIS_URL = "", SUBSCRIPTION = "" } = process.env;
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());

const consumer = createConsumer({ redis: REDIS_URL, subscription: SUBSCRIPTION, ordered: "key" });
await consumer.run(
  async (event, { attempt }) => {
    // An event can arrive more than once. Its source and id together identify it.
    console.log(event.type, event.id, JSON.stringify(event.data), `attempt ${attempt}`);
  },
  { signal: stop.signal },
);
