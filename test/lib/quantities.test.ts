import { expect, it } from "vitest";
import { formatCount, formatDuration } from "../../src/lib/quantities.ts";

it.each([
  [0, "0 seconds"],
  [1, "1 second"],
  [59.9, "59 seconds"],
  [60, "1 minute"],
  [1_527, "25 minutes"],
  [7_200, "2 hours"],
  [864_000, "10 days"],
])("formats %d seconds as %s", (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

it.each([
  [0, "0 deliveries"],
  [1, "1 delivery"],
  [1_527, "1,527 deliveries"],
])("formats %d with a noun as %s", (count, text) => {
  expect(formatCount(count, "delivery", "deliveries")).toBe(text);
});
