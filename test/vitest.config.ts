import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./support/longest-first.ts";

export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/**/*.test.ts"],
    exclude: ["test/faults/**", "test/bench/**", "test/cluster/**", "test/browser/**", "test/deep/**"],
    globalSetup: ["test/support/servers.ts"],
    setupFiles: ["test/support/compile-cache.ts", "test/support/leftovers.ts"],
    pool: "forks",
    // A worker's heap grows with each file: without this V8 marks all of it again and again on the way to so many MiB.
    execArgv: ["--initial-old-space-size=512"],
    // No file leaves anything behind: what a worker has loaded serves all files that it runs.
    isolate: false,
    // The program runs as Node runs it, with its types stripped; nothing is transformed.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Many tests wait for servers: others run meanwhile, on two cores as well. With four workers the cores idle at times; a sixth would
    // load the whole program once more.
    sequence: { sequencer: LongestFirst },
    maxWorkers: Math.max(5, availableParallelism() - 1),
    // They end what hangs; no test measures time by them.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 300_000,
    coverage: {
      include: ["src/**/*.ts"],
      // Runs in a browser: test:browser looks at it.
      exclude: ["src/console/**"],
      reporter: ["text-summary", "json-summary"],
      reportsDirectory: "node_modules/.cache/coverage",
    },
  },
});
