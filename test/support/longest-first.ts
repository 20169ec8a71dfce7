import { BaseSequencer, type TestSpecification } from "vitest/node";
import { filesOf } from "./files-of.ts";

/**
 * Test files below `test/` that keep a core busy, the longest first. A long file started last would run alone at the end.
 * Files that start many programs are near the top, because a worker that has loaded many modules starts programs slowly.
 */
const BUSY = filesOf(`
  simulation/simulation
  lib/servers/supervise
  e2e/setup
  main
  data/local-postgres
  cli/revoke-key
  conformance/leaks
  lib/json-schema/compiler
  ingest/worker/normalize-queue
  conformance/fuzz
  channels/polling/large-pages
  lib/worker-queue
  lib/secrets/passphrase
`);

/** Files that mostly wait, the longest first. */
const WAITING = filesOf(`
  channels/pull/sources
  handlers/handlers
  consumer/ordered-reading
  channels/pull/polls/polls
  consumer/consumer
  maintenance/housekeeper
  bus/jobs/job-queue
  bus/connection/write-connection
  e2e/polling
  channels/pull/polls/wrong-clock
  bus/connection/local-redis
  gateway/master-keys
  e2e/handlers
  e2e/sse
  resources/events/subscriptions
  resources/events/event-stream
  bus/connection/durability
  channels/pull/runs
  conformance/openings
  e2e/problems
  gateway/connection-renewals
  data/keyring/master-key-rotation
  consumer/shutdown
  e2e/channel-life
  e2e/roles
  http/rate-limit
  data/changes
  maintenance/pause-drainer
  cli/program
  cli/listen
`);

/**
 * Runs the longest files first, so that all workers finish at about the same time.
 * Alternates busy files with waiting ones, because several waiting files in a row would leave the cores idle.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const among = (names: readonly string[]) =>
      sorted
        .filter(({ moduleId }) => names.includes(moduleId))
        .sort((a, b) => names.indexOf(a.moduleId) - names.indexOf(b.moduleId));
    const waiting = among(WAITING);
    const others = [...among(BUSY), ...sorted.filter(({ moduleId }) => !isNamed(moduleId))];
    const inTurn = others.flatMap((file, at) => [file, ...waiting.slice(at, at + 1)]);
    return [...inTurn, ...waiting.slice(others.length)];
  }
}

const isNamed = (file: string): boolean => BUSY.includes(file) || WAITING.includes(file);
