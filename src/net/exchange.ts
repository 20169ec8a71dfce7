import type { Dispatcher } from "undici";
import { toOutboundError } from "./failures.ts";
import {
  OutboundError,
  type OutboundLimits,
  type OutboundRequest,
  type OutboundResponse,
} from "./outbound.ts";

/** The head of an answer, and its body as it comes off the wire. */
export interface Exchange {
  readonly status: number;
  readonly statusText: string;
  readonly headers: OutboundResponse["headers"];
  /** Read no faster than the reader asks; cancelling it ends the connection. Errors with an `OutboundError`. */
  readonly body: ReadableStream<Uint8Array>;
}

export type ExchangeLimits = Required<
  Pick<OutboundLimits, "connectTimeoutMs" | "headTimeoutMs" | "idleTimeoutMs">
>;

/** Bytes that wait for their reader before the socket is left unread. */
const BUFFER_BYTES = 64 * 1024;

/**
 * One request and its answer, without redirects. The promise resolves with the head.
 *
 * @throws OutboundError, or the reason of `signal`, which ends the body too.
 */
export function exchange(
  dispatcher: Dispatcher,
  { method, url, headers, body }: OutboundRequest,
  { limits, signal }: { readonly limits: ExchangeLimits; readonly signal: AbortSignal },
): Promise<Exchange> {
  signal.throwIfAborted();
  const { origin, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const handler = createHandler(limits, signal, { resolve, reject });
    dispatcher.dispatch({ origin, path: pathname + search, method, headers, body: body ?? null }, handler);
  });
}

function createHandler(
  limits: ExchangeLimits,
  signal: AbortSignal,
  { resolve, reject }: Pick<PromiseWithResolvers<Exchange>, "resolve" | "reject">,
): Dispatcher.DispatchHandler {
  let request: Dispatcher.DispatchController | undefined;
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  let over = false;
  let timer: NodeJS.Timeout | undefined;

  const giveUpAfter = (ms: number, what: string): void => {
    clearTimeout(timer);
    timer = setTimeout(() => fail(new OutboundError("timeout", `${what} took longer than ${ms} ms`)), ms);
  };
  const awaitData = (): void => giveUpAfter(limits.idleTimeoutMs, "the next bytes of the answer");
  const onAbort = (): void => fail(signal.reason);

  /** True once: nothing that comes later is heard. */
  const end = (): boolean => {
    if (over) return false;
    over = true;
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    return true;
  };
  const fail = (error: unknown): void => {
    if (!end()) return;
    if (stream) stream.error(error);
    else reject(error);
    request?.abort(error instanceof Error ? error : new Error("aborted", { cause: error }));
  };

  signal.addEventListener("abort", onAbort, { once: true });
  giveUpAfter(limits.connectTimeoutMs, "connecting");

  return {
    onRequestStart(controller) {
      request = controller;
      if (over) controller.abort(new Error("nobody waits for it any longer"));
      else giveUpAfter(limits.headTimeoutMs, "the head of the answer");
    },
    onResponseStart(controller, status, headers, statusText = "") {
      if (over || status < 200) return;
      const body = new ReadableStream<Uint8Array>(
        {
          start: (opened) => {
            stream = opened;
          },
          pull: () => {
            if (!controller.paused) return;
            awaitData();
            controller.resume();
          },
          cancel: () => {
            if (end()) controller.abort(new Error("the rest of the answer is not wanted"));
          },
        },
        new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_BYTES }),
      );
      awaitData();
      resolve({ status, statusText, headers: headers as Exchange["headers"], body });
    },
    onResponseData(controller, chunk) {
      if (over || stream === undefined) return;
      stream.enqueue(chunk);
      if ((stream.desiredSize ?? 0) > 0) {
        timer?.refresh();
      } else {
        // The reader takes the time; the sender is not late.
        clearTimeout(timer);
        controller.pause();
      }
    },
    onResponseEnd() {
      if (end()) stream?.close();
    },
    onResponseError(_, error) {
      fail(toOutboundError(error));
    },
  };
}
