import { existsSync } from "node:fs";
import { join } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Below `test/`, the longest first, whatever their size: begun last, one of them would run on alone. Those that start many programs
 * are among the first: a process that has loaded much starts others slowly.
 */
const LONG = `
  simulation/simulation
  e2e/first-start
  cli/backup
  e2e/docs-pasted
  lib/servers/supervise
  e2e/setup
  main
  e2e/rolling-restart
  e2e/polling-restart
  data/local-postgres
  bus/connection/local-redis
  cli/revoke-key
  conformance/leaks
  conformance/examples
  conformance/canaries
  e2e/event-stream
  channels/polling/large-pages
  lib/json-schema/compiler
  channels/pull/polls/polls
  channels/pull/sources
  conformance/fuzz
  consumer/ordered-reading
  gateway/normalize-elsewhere
  delivery/handlers
  consumer/consumer
  consumer/readers
  bus/jobs/job-queue
  e2e/polling
  e2e/handler-kills
  delivery/pause-drainer
  delivery/housekeeper
  e2e/sse
  e2e/handlers
  bus/connection/write-connection
  channels/pull/polls/wrong-clock
  resources/events/event-stream
  e2e/problems
  bus/connection/durability
  e2e/channel-life
  e2e/roles
  gateway/connection-renewals
  consumer/shutdown
  cli/listen
  lib/secrets/passphrase
  e2e/cloudevents
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
