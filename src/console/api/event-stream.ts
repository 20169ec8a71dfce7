import { EventSource } from "eventsource";
import { ApiError } from "./api-error.ts";
import { sendForResponse } from "./client.ts";

export interface StreamListener {
  /** Called with the data of each event. */
  readonly onEvent: (data: string) => void;
  /** Called when the state of the connection changes. `waiting` means that the connection failed and will be retried after `retryMs`. */
  readonly onState: (state: StreamState) => void;
}

export type StreamState =
  | { readonly is: "connecting" }
  | { readonly is: "live" }
  | { readonly is: "waiting"; readonly error: ApiError | undefined; readonly retryMs: number };

interface Options extends StreamListener {
  readonly path: string;
  /** Id of the last event that was received. The next connection resumes after this event. */
  readonly position: { lastEventId: string | undefined };
  readonly signal: AbortSignal;
}

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/**
 * Reads an event stream until `signal` aborts, and reconnects after failures.
 * @throws ApiError if a retry cannot help (400, 401, 403, 404)
 */
export async function readStream({ onState, ...options }: Options): Promise<void> {
  const { signal } = options;
  let retryMs = FIRST_RETRY_MS;
  function onOpen(): void {
    onState({ is: "live" });
    retryMs = FIRST_RETRY_MS;
  }
  while (!signal.aborted) {
    onState({ is: "connecting" });
    const failure = await readOnce({ ...options, onOpen });
    if (signal.aborted) return;
    const error = failure instanceof ApiError ? failure : undefined;
    if (error && [400, 401, 403, 404].includes(error.status)) throw error;
    onState({ is: "waiting", error, retryMs });
    await pause(retryMs, signal);
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2);
  }
}

/** Resolves when the stream has ended or `signal` has aborted, with the error of the request if it failed. */
function readOnce({
  path,
  position,
  signal,
  onEvent,
  onOpen,
}: Omit<Options, "onState"> & { readonly onOpen: () => void }): Promise<unknown> {
  const ended = Promise.withResolvers<unknown>();
  const closing = new AbortController();
  // `fetch` is replaced, because the request needs a bearer token. The browser's own `EventSource` cannot send one.
  const source = new EventSource(path, {
    fetch(_, { signal: closed }) {
      const { lastEventId } = position;
      const headers = {
        accept: "text/event-stream",
        ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
      };
      return sendForResponse("GET", path, { signal: closed, headers }).catch((error: unknown) => {
        ended.resolve(error);
        throw error;
      });
    },
  });
  source.onopen = onOpen;
  source.onmessage = ({ data, lastEventId }) => {
    position.lastEventId = lastEventId;
    onEvent(data);
  };
  source.addEventListener("position", ({ lastEventId }) => {
    position.lastEventId = lastEventId;
  });
  source.onerror = () => ended.resolve(undefined);
  signal.addEventListener("abort", ended.resolve, { signal: closing.signal });
  return ended.promise.finally(() => {
    closing.abort();
    source.close();
  });
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
