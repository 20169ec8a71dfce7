import { describe, it } from "vitest";

/** Whether this is `npm run test:deep` (or `npm run test:cluster`). The deep run also contains each test file that imports this module. */
export const isDeepRun = process.env.INLET_TEST_DEEP === "1";

/** Registers nothing. */
const ignore = Object.assign(() => {}, { each: () => () => {} });

/** Declares a test that takes too long for `npm test`, and only belongs to the deep run. */
export const itDeep = isDeepRun ? it : (ignore as unknown as typeof it);
/** Declares a suite that takes too long for `npm test`, and only belongs to the deep run. */
export const describeDeep = isDeepRun ? describe : (ignore as unknown as typeof describe);
