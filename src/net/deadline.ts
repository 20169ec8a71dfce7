import { OutboundError } from "./outbound.ts";

/** A signal that aborts when the caller's signal aborts or the time is up. After disposal, it never aborts. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
}

/** Starts a deadline. Dispose of the result, because its timer and listener otherwise remain until the time is up. */
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
