import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LONG_FILES } from "./support/long-files.ts";
import base from "./vitest.config.ts";

const { test } = base;
const root = join(import.meta.dirname, "..");

/** Test files of `npm test` with tests that only run here. */
const alsoDeep = globSync("test/**/*.test.ts", { cwd: root, exclude: test?.exclude ?? [] }).filter((file) =>
  readFileSync(join(root, file), "utf8").includes("/support/deep-run.ts"),
);

/**
 * Runs the tests that take too long for `npm test`: `test/deep`, the long files, and the tests that only run here. They kill servers, run
 * random operations, and paste the commands of all documentation pages.
 */
export default defineConfig({
  test: {
    ...test,
    include: ["test/deep/**/*.test.ts", ...LONG_FILES, ...alsoDeep],
    exclude: [],
    env: { INLET_TEST_DEEP: "1" },
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
  },
});
