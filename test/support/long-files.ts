import { filesOf } from "./files-of.ts";

/**
 * Test files that only run in `npm run test:deep`. They tell long stories on whole gateways, or repeat tests for each provider, operation
 * or random seed. Others start programs and embedded servers, or mostly wait for real time.
 *
 * `npm test` has a shorter file for most capabilities. It has none for `inlet receive`, subscriptions of agents, the order after a pause,
 * dead letters of handlers, schema drift, and databases of earlier versions.
 */
export const LONG_FILES: readonly string[] = filesOf(`
  bus/publish/dedupe-random
  channels/polling/large-pages
  channels/polling/random
  channels/polling/reconcile-random
  channels/pull/polls/wrong-clock
  channels/pull/sources
  cli/receive
  cli/revoke-key
  cli/tables
  conformance/fuzz
  conformance/openings
  conformance/provider-emulators
  consumer/key-order
  consumer/ordered-reading
  consumer/shutdown
  data/baseline
  data/channels/schema-versions
  data/local-postgres
  e2e/channel-life
  e2e/github
  e2e/intake-redrive
  e2e/intakes
  e2e/polling
  e2e/problems
  e2e/series
  e2e/setup
  e2e/sse
  e2e/store-warnings
  e2e/traces
  e2e/two-gateways
  handlers/handlers
  ingest/route/coverage
  ingest/worker/normalize-queue
  lib/json-schema/compiler
  main
  maintenance/hold-drainer
  maintenance/pause-drainer
  maintenance/problems/drift-watch
  mcp/ai-sdk
  mcp/conformance
  mcp/leaks
  mcp/streams
  mcp/subscribe
  registrations/faults
  registrations/providers
  tracing/off
`);
