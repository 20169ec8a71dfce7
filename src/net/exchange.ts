import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Body } from "./body.ts";
import { toOutboundError } from "./failures.ts";
import { OutboundError, type OutboundLimits, type OutboundRequest, type OutboundStream } from "./outbound.ts";

/**
 * Response whose body is not decoded yet. Canceling the body closes the connection, and a read throws an `OutboundError` or the reason of
 * the signal.
 */
export type Exchange = Omit<OutboundStream, "url">;

export type ExchangeLimits = Required<
  Pick<OutboundLimits, "connectTimeoutMs" | "headTimeoutMs" | "idleTimeoutMs">
>;

/** Number of buffered body bytes from which the socket is not read, so that a slow reader slows down the sender. */
const BUFFER_BYTES = 64 * 1024;

/**
 * Sends one request without following redirects. Resolves when the response headers have arrived, but the signal also aborts
 * reading the body.
 *
 * @throws OutboundError, or the reason of `signal`
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

/**
 * Handles a request and serves as the body of its response. One object for both saves memory, because there can be thousands of
 * connections.
 */
class ExchangeHandler implements Dispatcher.DispatchHandler, Body {
  readonly #limits: ExchangeLimits;
  readonly #signal: AbortSignal;
  /** Promise for the status and headers. `undefined` after they have arrived. */
  #head: PromiseWithResolvers<Exchange> | undefined;
  #request: Dispatcher.DispatchController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #reader: PromiseWithResolvers<Uint8Array | undefined> | undefined;

  constructor(limits: ExchangeLimits, signal: AbortSignal, head: PromiseWithResolvers<Exchange>) {
    this.#limits = limits;
    this.#signal = signal;
    this.#head = head;
    signal.addEventListener("abort", this, { once: true });
    this.#startTimeout(limits.connectTimeoutMs, "connecting");
  }

  /** Event listener for the abort of the signal. */
  handleEvent(): void {
    this.#fail(this.#signal.reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#request = controller;
    if (this.#isOver) controller.abort(new Error("the call has already ended"));
    else this.#startTimeout(this.#limits.headTimeoutMs, "waiting for the response headers");
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (this.#isOver || status < 200) return;
    // Clear the raw headers, which would otherwise stay in memory until the end of the body.
    controller.rawHeaders = null;
    this.#awaitData();
    this.#head?.resolve({ status, headers: headers as Exchange["headers"], body: this });
    this.#head = undefined;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver || this.#head !== undefined) return;
    if (this.#reader !== undefined) {
      this.#resolveReader(chunk);
    } else {
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
    }
    if (this.#bytes < BUFFER_BYTES) {
      this.#timer?.refresh();
    } else {
      // Stop the idle timer, because the delay is now caused by the reader instead of the server.
      clearTimeout(this.#timer);
      controller.pause();
    }
  }

  onResponseEnd(): void {
    if (this.#end()) this.#resolveReader(undefined);
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
    this.#resolveReader(undefined);
    this.#request?.abort(new Error("the rest of the response was canceled"));
  }

  #resolveReader(chunk: Uint8Array | undefined): void {
    this.#reader?.resolve(chunk);
    this.#reader = undefined;
  }

  #awaitData(): void {
    this.#startTimeout(this.#limits.idleTimeoutMs, "waiting for more of the response body");
  }

  #startTimeout(ms: number, phase: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(ExchangeHandler.#onTimeout, ms, this, phase, ms);
  }

  static #onTimeout(this: void, handler: ExchangeHandler, phase: string, ms: number): void {
    handler.#fail(new OutboundError("timeout", `${phase} took longer than ${ms} ms`));
  }

  /** Marks the exchange as ended. Returns false if it had already ended. */
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
