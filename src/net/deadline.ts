import { OutboundError } from "./outbound.ts";

/** A signal that also aborts, as a timeout, after some time. Disposed, it is the caller's no longer, and never aborts. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
}

/** One that nobody disposes ends by itself when its time is over. */
export function startDeadline(parent: AbortSignal, totalTimeoutMs: number): Deadline {
  const controller = new AbortController();
  const end = (): void => {
    clearTimeout(timer);
    parent.removeEventListener("abort", onAbort);
  };
  const onAbort = (): void => {
    end();
    controller.abort(parent.reason);
  };
  const timer = setTimeout(() => {
    end();
    controller.abort(new OutboundError("timeout", `the call took longer than ${totalTimeoutMs} ms`));
  }, totalTimeoutMs).unref();
  if (parent.aborted) onAbort();
  else parent.addEventListener("abort", onAbort, { once: true });
  return { signal: controller.signal, [Symbol.dispose]: end };
}
