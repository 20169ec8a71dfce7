import type { Agent } from "undici";
import { loadOnce } from "../lib/load-once.ts";
import { createBlockCheck, type GuardOptions } from "./blocked-address.ts";
import { readWhole } from "./body.ts";
import { startDeadline } from "./deadline.ts";
import { ACCEPT_ENCODING } from "./decode.ts";
import { follow } from "./follow.ts";
import { type Outbound, OutboundError } from "./outbound.ts";

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
  let agent: Agent | undefined;
  let isClosed = false;
  const loadAgent = loadOnce(async () => {
    const { createGuardedAgent } = await import("./guarded-agent.ts");
    agent = createGuardedAgent(options);
    return agent;
  });
  /** Loads undici at the first call, because a gateway that only receives webhooks never needs its memory. */
  async function openAgent(): Promise<Agent> {
    const opened = await loadAgent().catch((error: unknown) => {
      throw new OutboundError("reset", "the HTTP client could not be loaded", { cause: error });
    });
    if (isClosed) throw new OutboundError("reset", "the gateway is stopping");
    return opened;
  }
  return {
    async request(request, { signal, totalTimeoutMs = TOTAL_TIMEOUT_MS, maxBytes = MAX_BYTES, ...rest }) {
      using deadline = startDeadline(signal, totalTimeoutMs);
      const headers = { "accept-encoding": ACCEPT_ENCODING, "user-agent": USER_AGENT, ...request.headers };
      const limits = { ...DEFAULTS, ...rest, maxBytes };
      const answer = await follow(
        await openAgent(),
        { ...request, headers },
        { limits, signal: deadline.signal },
      );
      return { ...answer, body: await readWhole(answer.body) };
    },
    async open(request, { signal, ...rest }) {
      const sent = { ...request, headers: Object.fromEntries(new Headers(request.headers)) };
      return follow(await openAgent(), sent, { limits: { ...DEFAULTS, ...rest }, signal });
    },
    findBlockedAddress: createBlockCheck(options),
    async [Symbol.asyncDispose]() {
      isClosed = true;
      await agent?.destroy();
    },
  };
}
