import { defineConfig } from "vitest/config";

/** What a person sees: in a headless Chromium of this machine. */
export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/browser/**/*.test.ts"],
    globalSetup: ["test/support/servers.ts"],
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
