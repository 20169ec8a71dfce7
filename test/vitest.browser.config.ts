import { defineConfig } from "vitest/config";

/** What a person sees: in a headless Chromium of this machine. */
export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/browser/**/*.test.ts"],
    globalSetup: ["test/support/servers.ts"],
    setupFiles: ["test/support/compile-cache.ts"],
    pool: "forks",
    // Most of a story waits for the page.
    maxWorkers: 2,
    // A browser beside gateways, on two cores: conditions are waited for, however long they take.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
  },
});
