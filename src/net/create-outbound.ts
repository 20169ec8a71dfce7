import { readWhole } from "./body.ts";
import { startDeadline } from "./deadline.ts";
import { ACCEPT_ENCODING } from "./decode.ts";
import { follow } from "./follow.ts";
import { createBlockCheck, createGuardedAgent, type GuardOptions } from "./guarded-agent.ts";
import type { Outbound } from "./outbound.ts";

const DEFAULTS = {
  connectTimeoutMs: 10_000,
  headTimeoutMs: 30_000,
  idleTimeoutMs: 30_000,
  maxRedirects: 5,
} as const;
/** Default time limit in ms for a call that reads the complete response. */
const TOTAL_TIMEOUT_MS = 60_000;
const MAX_BYTES = 10 * 1024 * 1024;

/** `User-Agent` header of every request, because some servers reject requests without one. */
const USER_AGENT = "inlet";

/**
 * Creates the HTTP client for calls to other servers. All calls share the address check and a connection pool. Disposal aborts
 * calls in flight.
 */
export function createOutbound(options: GuardOptions): Outbound & AsyncDisposable {
  const agent = createGuardedAgent(options);
  return {
    async request(request, { signal, totalTimeoutMs = TOTAL_TIMEOUT_MS, maxBytes = MAX_BYTES, ...rest }) {
      using deadline = startDeadline(signal, totalTimeoutMs);
      const headers = { "accept-encoding": ACCEPT_ENCODING, "user-agent": USER_AGENT, ...request.headers };
      const limits = { ...DEFAULTS, ...rest, maxBytes };
      const answer = await follow(agent, { ...request, headers }, { limits, signal: deadline.signal });
      return { ...answer, body: await readWhole(answer.body) };
    },
    async open(request, { signal, ...rest }) {
      const sent = { ...request, headers: Object.fromEntries(new Headers(request.headers)) };
      return follow(agent, sent, { limits: { ...DEFAULTS, ...rest }, signal });
    },
    findBlockedAddress: createBlockCheck(options),
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}
