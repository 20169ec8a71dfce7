import { createHandlerRequest } from "../../event/handler-request.ts";
import { backoffMs } from "../../lib/backoff.ts";
import { sleep } from "../../lib/sleep.ts";
import { formatCause } from "../client/api.ts";
import type { ListenedEvent } from "./entry.ts";

/** Response of the local server to one event. */
export interface Forwarded {
  /** `undefined` after a timeout. The server then has received the event. */
  readonly status: number | undefined;
  readonly latencyMs: number;
}

export interface ForwardOptions {
  readonly url: string;
  readonly secret: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called when the server cannot be reached. The event is retried. */
  readonly onWaiting: (reason: string) => void;
}

const BACKOFF = { initialMs: 250, maxMs: 5_000, factor: 2, jitter: 0.2 } as const;
/** Used in message ids in place of a subscription id. */
const LISTENER = "listen";

/**
 * Sends an event in the same form as to a handler. Retries until the server responds with any status. Returns `undefined` if the
 * signal aborts first.
 */
export async function forward(event: ListenedEvent, options: ForwardOptions): Promise<Forwarded | undefined> {
  const { url, secret, timeoutMs, signal, onWaiting } = options;
  for (let failures = 1; ; failures++) {
    const { method, headers, body } = createHandlerRequest(event, {
      url,
      secret,
      subscriptionId: LISTENER,
      atMs: Date.now(),
    });
    const startedAt = performance.now();
    const late = AbortSignal.timeout(timeoutMs);
    try {
      // A request in flight is not aborted on shutdown: the event would be sent again at the next start.
      const response = await fetch(url, { method, headers, body, redirect: "manual", signal: late });
      await response.arrayBuffer();
      return { status: response.status, latencyMs: performance.now() - startedAt };
    } catch (error) {
      if (late.aborted) return { status: undefined, latencyMs: performance.now() - startedAt };
      if (signal.aborted) return undefined;
      onWaiting(formatCause(error));
      await sleep(backoffMs(BACKOFF, failures, Math.random), signal);
      if (signal.aborted) return undefined;
    }
  }
}
