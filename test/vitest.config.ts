import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LONG_FILES } from "./support/long-files.ts";
import { LongestFirst } from "./support/longest-first.ts";

export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/**/*.test.ts"],
    exclude: [
      ...["test/faults/**", "test/bench/**", "test/cluster/**", "test/browser/**", "test/deep/**"],
      ...LONG_FILES,
    ],
    globalSetup: ["test/support/servers.ts"],
    setupFiles: ["test/support/compile-cache.ts", "test/support/leftovers.ts"],
    pool: "forks",
    // A worker's heap grows with each test file. A large initial heap avoids repeated full collections by V8.
    execArgv: ["--initial-old-space-size=512"],
    // Test files clean up after themselves, so a worker can reuse its loaded modules for all of its files.
    isolate: false,
    // Node runs the TypeScript directly by stripping types, as in production.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Many tests wait for servers, so more workers than cores are useful. With four workers, two cores idle at times. A sixth would
    // load the whole program once more.
    sequence: { sequencer: LongestFirst },
    maxWorkers: Math.max(5, availableParallelism() - 1),
    // Timeouts only end hanging tests. No test depends on them.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 300_000,
    coverage: {
      include: ["src/**/*.ts"],
      // The console runs in a browser and is tested by test:browser.
      exclude: ["src/console/**"],
      reporter: ["text-summary", "json-summary"],
      reportsDirectory: "node_modules/.cache/coverage",
    },
  },
});
