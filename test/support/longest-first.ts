import { existsSync } from "node:fs";
import { join } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Below `test/`, the longest first, whatever their size: begun last, one of them would run on alone. */
const LONG = `
  simulation/simulation
  conformance/examples
  e2e/first-start
  conformance/leaks
  gateway/normalize-elsewhere
  conformance/canaries
  lib/json-schema/compiler
  e2e/docs-pasted
  e2e/rolling-restart
  conformance/fuzz
  e2e/event-stream
  delivery/handlers
  channels/pull/sources
  e2e/setup
  e2e/polling-restart
  data/local-postgres
  delivery/housekeeper
  channels/pull/polls/wrong-clock
  e2e/problems
  data/keyring/master-key-rotation
  delivery/group-reconciler
  bus/jobs/job-queue
  e2e/channel-life
  consumer/readers
  lib/worker-queue
  channels/pull/polls/polls
  consumer/ordered-reading
  conformance/openings
  e2e/github
  consumer/consumer
  conformance/refusals
  bus/connection/durability
  gateway/master-keys
  resources/apps/channel-connections
  resources/apps/upgrades
  e2e/handlers
  resources/events/event-stream
  http/rate-limit
  gateway/connection-renewals
  e2e/handler-kills
  resources/events/quarantine
  gateway/connection-authorizations
  cli/setup
  bus/connection/write-connection
  e2e/sse
  resources/events/events
  resources/events/subscriptions
  cli/program
  resources/apps/sources
  bus/connection/local-redis
  bus/publish/publish-unavailable
  e2e/two-gateways
  resources/kit/openapi
  gateway/connections
  data/channels/addresses
  e2e/polling
`
  .trim()
  .split(/\s+/)
  .map((name) => join(import.meta.dirname, "..", `${name}.test.ts`));

/** Begins with the files that take longest, so that all workers end at about the same time. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const gone = LONG.filter((file) => !existsSync(file));
    if (gone.length > 0) throw new Error(`no such files, yet they are to come first: ${gone.join(", ")}`);
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONG.indexOf(moduleId);
      return at < 0 ? LONG.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
