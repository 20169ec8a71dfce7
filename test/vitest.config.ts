import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/**/*.test.ts"],
    exclude: ["test/faults/**", "test/bench/**", "test/cluster/**", "test/browser/**"],
    globalSetup: ["test/support/postgres-server.ts"],
    pool: "forks",
    // Most tests wait for servers: a second file runs meanwhile, on two cores as well.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
});
