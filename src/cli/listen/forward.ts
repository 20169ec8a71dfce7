import { createHandlerRequest } from "../../event/handler-request.ts";
import { backoffMs } from "../../lib/backoff.ts";
import { sleep } from "../../lib/sleep.ts";
import { formatCause } from "../client/api.ts";
import { awakeTimeout } from "./awake-timeout.ts";
import type { ListenedEvent } from "./entry.ts";

export interface Forwarded {
  /** HTTP status of the response. `undefined` after a timeout, although the server may have processed the event. */
  readonly status: number | undefined;
  readonly latencyMs: number;
}

export interface ForwardOptions {
  readonly url: string;
  readonly secret: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called before each retry when the local server cannot be reached. */
  readonly onWaiting: (reason: string) => void;
}

const BACKOFF = { initialMs: 250, maxMs: 5_000, factor: 2, jitter: 0.2 } as const;
/** Stands for the subscription id in message ids, because a local listener has no subscription. */
const LISTENER = "listen";

/**
 * Sends an event to a local server, as an event handler receives it. Retries until the server responds or the request times out,
 * and returns `undefined` if the signal aborts first.
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
    using late = awakeTimeout(timeoutMs);
    try {
      // Do not pass `signal`. If an abort canceled a request in flight, the next start would send the event again.
      const response = await fetch(url, { method, headers, body, redirect: "manual", signal: late.signal });
      await response.arrayBuffer();
      return { status: response.status, latencyMs: performance.now() - startedAt };
    } catch (error) {
      if (late.signal.aborted) return { status: undefined, latencyMs: performance.now() - startedAt };
      if (signal.aborted) return undefined;
      onWaiting(formatCause(error));
      await sleep(backoffMs(BACKOFF, failures, Math.random), signal);
      if (signal.aborted) return undefined;
    }
  }
}
