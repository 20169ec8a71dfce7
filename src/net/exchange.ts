import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Body } from "./body.ts";
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
  /** Cancelling it ends the connection. Reading it throws an `OutboundError`, or the reason of the signal. */
  readonly body: Body;
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
  const head = Promise.withResolvers<Exchange>();
  const handler = new ExchangeHandler(limits, signal, head);
  dispatcher.dispatch({ origin, path: pathname + search, method, headers, body: body ?? null }, handler);
  return head.promise;
}

/** One object for all that an open connection holds: there may be thousands. */
class ExchangeHandler implements Dispatcher.DispatchHandler, Body {
  readonly #limits: ExchangeLimits;
  readonly #signal: AbortSignal;
  /** Until it has come. */
  #head: PromiseWithResolvers<Exchange> | undefined;
  #request: Dispatcher.DispatchController | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** True once nothing that comes later is heard. */
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;
  /** The chunks that wait for their reader. */
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #reader: PromiseWithResolvers<Uint8Array | undefined> | undefined;

  constructor(limits: ExchangeLimits, signal: AbortSignal, head: PromiseWithResolvers<Exchange>) {
    this.#limits = limits;
    this.#signal = signal;
    this.#head = head;
    signal.addEventListener("abort", this, { once: true });
    this.#giveUpAfter(limits.connectTimeoutMs, "connecting");
  }

  /** The signal has aborted. */
  handleEvent(): void {
    this.#fail(this.#signal.reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#request = controller;
    if (this.#isOver) controller.abort(new Error("nobody waits for it any longer"));
    else this.#giveUpAfter(this.#limits.headTimeoutMs, "the head of the answer");
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText = "",
  ): void {
    if (this.#isOver || status < 200) return;
    // Its bytes would be kept for as long as the body comes.
    controller.rawHeaders = null;
    this.#awaitData();
    this.#head?.resolve({ status, statusText, headers: headers as Exchange["headers"], body: this });
    this.#head = undefined;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver || this.#head !== undefined) return;
    if (this.#reader !== undefined) {
      this.#answerReader(chunk);
    } else {
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
    }
    if (this.#bytes < BUFFER_BYTES) {
      this.#timer?.refresh();
    } else {
      // The reader takes the time; the sender is not late.
      clearTimeout(this.#timer);
      controller.pause();
    }
  }

  onResponseEnd(): void {
    if (this.#end()) this.#answerReader(undefined);
  }

  onResponseError(_: unknown, error: Error): void {
    this.#fail(toOutboundError(error));
  }

  read(): Promise<Uint8Array | undefined> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) this.#bytes -= chunk.length;
    if (this.#request?.paused === true && this.#bytes < BUFFER_BYTES && !this.#isOver) {
      this.#awaitData();
      this.#request.resume();
    }
    if (chunk !== undefined || this.#isOver) return Promise.resolve(chunk);
    this.#reader = Promise.withResolvers();
    return this.#reader.promise;
  }

  async cancel(): Promise<void> {
    this.#chunks = [];
    if (!this.#end()) return;
    this.#answerReader(undefined);
    this.#request?.abort(new Error("the rest of the answer is not wanted"));
  }

  #answerReader(chunk: Uint8Array | undefined): void {
    this.#reader?.resolve(chunk);
    this.#reader = undefined;
  }

  #awaitData(): void {
    this.#giveUpAfter(this.#limits.idleTimeoutMs, "the next bytes of the answer");
  }

  #giveUpAfter(ms: number, what: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(ExchangeHandler.#giveUp, ms, this, what, ms);
  }

  static #giveUp(this: void, handler: ExchangeHandler, what: string, ms: number): void {
    handler.#fail(new OutboundError("timeout", `${what} took longer than ${ms} ms`));
  }

  /** True once. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this);
    return true;
  }

  #fail(error: unknown): void {
    if (!this.#end()) return;
    this.#failure = { error };
    this.#chunks = [];
    (this.#head ?? this.#reader)?.reject(error);
    this.#request?.abort(error instanceof Error ? error : new Error("aborted", { cause: error }));
  }
}
