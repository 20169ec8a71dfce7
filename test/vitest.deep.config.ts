import { defineConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** More of what `npm test` shows (long random stories, a whole fuzz, every schema of GitHub), and what takes long: kills in a row, all examples and pages, pasted. */
export default defineConfig({
  test: {
    ...base.test,
    include: ["test/deep/**/*.test.ts"],
    exclude: [],
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
  },
});
