import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Ten seconds and more each, whatever their size: begun last, one of them would run on alone. */
const LONG = [
  ...["simulation/simulation", "channels/pull/polls/wrong-clock", "e2e/docs-pasted"],
  ...[
    "conformance/leaks",
    "e2e/first-start",
    "e2e/setup",
    "lib/json-schema/compiler",
    "conformance/examples",
  ],
  ...[
    "e2e/rolling-restart",
    "data/local-postgres",
    "conformance/canaries",
    "conformance/fuzz",
    "e2e/event-stream",
  ],
  ...[
    "data/keyring/master-key-rotation",
    "channels/pull/sources",
    "e2e/channel-life",
    "channels/pull/polls/polls",
  ],
  ...[
    "delivery/pause-drainer",
    "e2e/handler-kills",
    "channels/polling/random",
    "e2e/github",
    "e2e/polling-restart",
  ],
].map((name) => `/test/${name}.test.ts`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONG.findIndex((name) => moduleId.endsWith(name));
      return at < 0 ? LONG.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/**/*.test.ts"],
    exclude: ["test/faults/**", "test/bench/**", "test/cluster/**", "test/browser/**", "test/deep/**"],
    globalSetup: ["test/support/servers.ts"],
    setupFiles: ["test/support/leftovers.ts"],
    pool: "forks",
    // No file leaves anything behind: what a worker has loaded serves all files that it runs.
    isolate: false,
    // The program runs as Node runs it, with its types stripped; nothing is transformed.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Most tests wait for servers: others run meanwhile, on two cores as well.
    sequence: { sequencer: LongestFirst },
    maxWorkers: Math.max(6, availableParallelism() - 1),
    // Ends what hangs; no test measures time by it.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    coverage: {
      include: ["src/**/*.ts"],
      reporter: ["text-summary", "json-summary"],
      reportsDirectory: "node_modules/.cache/coverage",
    },
  },
});
