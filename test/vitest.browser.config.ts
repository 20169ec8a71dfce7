import { defineConfig } from "vitest/config";

/** Runs the browser tests in a headless Chromium of this machine. */
export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/browser/**/*.test.ts"],
    globalSetup: ["test/support/servers.ts"],
    setupFiles: ["test/support/compile-cache.ts"],
    pool: "forks",
    // Tests mostly wait for pages, so two run in parallel.
    maxWorkers: 2,
    // A browser and gateways share two cores, so conditions can take long.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 120_000 } },
  },
});
