import { expect, it } from "vitest";
import { now, openedBus, testChannel, testEvent, testPolicy } from "../support.ts";

const bus = openedBus();

it("an organization whose deliveries wait by the thousands holds up no other's", async () => {
  const [flood, other] = [testChannel(), testChannel()];
  let written = 0;
  const flooding = Array.from({ length: 5_000 }, async () => {
    await bus.publish({ channel: flood, events: [testEvent(flood)], policy: testPolicy }, now);
    written++;
  });
  // Were there one line for all, it would be in the last call.
  await bus.publish({ channel: other, events: [testEvent(other)], policy: testPolicy }, now);
  expect(written).toBeLessThan(2_500);
  await Promise.all(flooding);
  expect(written).toBe(5_000);
});
