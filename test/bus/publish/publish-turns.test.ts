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

it("large deliveries of an organization let more than one of another's pass at a time", async () => {
  const [large, small] = [testChannel(), testChannel()];
  const data = "x".repeat(3 * 1024 * 1024);
  let written = 0;
  const flooding = Array.from({ length: 8 }, async () => {
    await bus.publish(
      { channel: large, events: [testEvent(large, undefined, { data })], policy: testPolicy },
      now,
    );
    written++;
  });
  await Promise.all(
    Array.from({ length: 20 }, () =>
      bus.publish({ channel: small, events: [testEvent(small)], policy: testPolicy }, now),
    ),
  );
  expect(written).toBeLessThan(4);
  await Promise.all(flooding);
});
