import { startDeadline } from "./deadline.ts";
import { ACCEPT_ENCODING } from "./decode.ts";
import { createFetch } from "./fetch.ts";
import { follow } from "./follow.ts";
import { createGuardedAgent, type GuardOptions } from "./guarded-agent.ts";
import type { Outbound } from "./outbound.ts";

const DEFAULTS = {
  connectTimeoutMs: 10_000,
  headTimeoutMs: 30_000,
  idleTimeoutMs: 30_000,
  maxRedirects: 5,
} as const;
/** Of an answer that is read whole. */
const TOTAL_TIMEOUT_MS = 60_000;
const MAX_BYTES = 10 * 1024 * 1024;

/** Some servers refuse calls without a User-Agent. */
const USER_AGENT = "inlet";

/** Calls to other servers under one guard; connections are kept alive between them. Disposal ends all that are under way. */
export function createOutbound(options: GuardOptions): Outbound & AsyncDisposable {
  const agent = createGuardedAgent(options);
  return {
    async request(request, { signal, totalTimeoutMs = TOTAL_TIMEOUT_MS, maxBytes = MAX_BYTES, ...rest }) {
      using deadline = startDeadline(signal, totalTimeoutMs);
      const headers = { "accept-encoding": ACCEPT_ENCODING, "user-agent": USER_AGENT, ...request.headers };
      const answer = await follow(
        agent,
        { ...request, headers },
        { limits: { ...DEFAULTS, ...rest, maxBytes }, redirect: "follow", signal: deadline.signal },
      );
      const { status, url } = answer;
      const chunks: Uint8Array[] = [];
      for await (const chunk of answer.body) chunks.push(chunk);
      return { status, headers: answer.headers, url, body: Buffer.concat(chunks) };
    },
    fetch: (limits) => createFetch(agent, { ...DEFAULTS, ...limits }),
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}
