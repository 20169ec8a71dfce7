import { type LimitDefaults, type Limits, limitsInForce } from "../../src/data/accounts/limits.ts";
import { computeLimitDefaults } from "../../src/gateway/limit-defaults.ts";

/** The defaults of a gateway whose Redis has unlimited memory, with rates too high to slow down tests. */
export const testLimitDefaults = (rowsPerResource = 1_000_000): LimitDefaults =>
  computeLimitDefaults({
    topicMebibytesPerOrganization: undefined,
    hookRequestsPerSecond: 1_000_000,
    sourceDeliveriesPerSecond: 1_000_000,
    rowsPerResource,
  });

const defaults = testLimitDefaults();
export const testLimitsOf = (_organizationId: string): Limits => limitsInForce(defaults, undefined, false);
