import { expect, it } from "vitest";
import { computeLimitDefaults } from "../../src/gateway/limit-defaults.ts";

const MIB = 1024 * 1024;
const settings = { hookRequestsPerSecond: 1, sourceDeliveriesPerSecond: 2, rowsPerResource: 3 };
const bytesBy = (topicMebibytesPerOrganization: number | undefined, maxMemoryBytes?: number) => {
  const { others: values, topicBytes } = computeLimitDefaults(
    { ...settings, topicMebibytesPerOrganization },
    maxMemoryBytes,
  );
  expect(topicBytes).toEqual({
    bytes: values.topicBytes,
    isDerived: topicMebibytesPerOrganization === undefined,
  });
  return [values.topicBytes / MIB, values.quarantineBytes / MIB];
};

it("the default storage limit of an organization is a fraction of Redis' memory, unless the operator configures a limit", () => {
  expect(bytesBy(undefined, 96 * MIB)).toEqual([24, 12]);
  expect(bytesBy(undefined, 64 * 1024 * MIB)).toEqual([2_048, 512]);
  expect(bytesBy(undefined)).toEqual([2_048, 512]);
  expect(bytesBy(80, 96 * MIB)).toEqual([80, 12]);
});

it("the operator's own organization has no storage limit except half of Redis' memory for its quarantine", () => {
  const boundOf = (maxMemoryBytes?: number) => {
    const { operators } = computeLimitDefaults(
      { ...settings, topicMebibytesPerOrganization: 80 },
      maxMemoryBytes,
    );
    return Object.entries(operators).filter(([, limit]) => limit !== undefined);
  };
  expect(boundOf(96 * MIB)).toEqual([["quarantineBytes", 48 * MIB]]);
  expect(boundOf()).toEqual([]);
});
