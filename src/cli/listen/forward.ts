import { createHandlerRequest } from "../../event/handler-request.ts";
import { backoffMs } from "../../lib/backoff.ts";
import { sleep } from "../../lib/sleep.ts";
import { formatCause } from "../client/api.ts";
import type { ListenedEvent } from "./entry.ts";

/** The end of one event's way: what the local server has answered. */
export interface Forwarded {
  /** Undefined: it took longer than it may, and has the event. */
  readonly status: number | undefined;
  readonly latencyMs: number;
}

export interface ForwardOptions {
  readonly url: string;
  readonly secret: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Told when nobody takes the event: it is tried again. */
  readonly onWaiting: (reason: string) => void;
}

const BACKOFF = { initialMs: 250, maxMs: 5_000, factor: 2, jitter: 0.2 } as const;
/** Its name within the ids of requests, where a handler has that of its subscription. */
const LISTENER = "listen";

/**
 * Sends an event as a handler gets it, until somebody has answered it: any status will do. Undefined where the signal aborts before.
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
      // What is under way when somebody wants to end is waited for: it would come again else.
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
