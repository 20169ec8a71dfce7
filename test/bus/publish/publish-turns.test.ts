import { expect, it } from "vitest";
import { now, openedBus, testChannel, testEvent, testPolicy } from "../support.ts";

const bus = openedBus();

it("publishing a delivery does not wait for thousands of queued deliveries of another organization", async () => {
  const [flood, other] = [testChannel(), testChannel()];
  let written = 0;
  const flooding = Array.from({ length: 5_000 }, async () => {
    await bus.publish({ channel: flood, events: [testEvent(flood)], policy: testPolicy }, now);
    written++;
  });
  // With a single queue for all organizations, it would be in the last call.
  await bus.publish({ channel: other, events: [testEvent(other)], policy: testPolicy }, now);
  expect(written).toBeLessThan(2_500);
  await Promise.all(flooding);
  expect(written).toBe(5_000);
});

it("publishing sends small deliveries of one organization before most of the queued large deliveries of another organization", async () => {
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
