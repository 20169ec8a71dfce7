import { defineConfig } from "vitest/config";

/** Runs tests specific to a Redis Cluster of three masters, and the end-to-end tests of a single Redis on it. */
export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: [
      "test/cluster/**/*.test.ts",
      "test/consumer/consumer.test.ts",
      "test/e2e/{github,two-gateways,channel-life,sources-handover}.test.ts",
      "test/deep/{event-stream,polling-restart,readers}.test.ts",
      "test/e2e/handlers.test.ts",
      "test/deep/handler-kills.test.ts",
    ],
    env: { INLET_TEST_REDIS: "cluster", INLET_TEST_DEEP: "1" },
    globalSetup: ["test/support/servers.ts"],
    setupFiles: ["test/support/compile-cache.ts"],
    pool: "forks",
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
