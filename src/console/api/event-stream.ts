import { ApiError } from "./api-error.ts";
import { sendForResponse } from "./client.ts";
import { createParser, type StreamEvent } from "./stream-parser.ts";

export interface StreamListener {
  readonly onEvent: (event: StreamEvent) => void;
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
 * Reads an event stream until `signal` aborts, and reconnects after failures. Replaces the browser's `EventSource`,
 * which cannot send a bearer token.
 * @throws ApiError if a retry cannot help (400, 401, 403, 404)
 */
export async function readStream({ path, position, signal, onEvent, onState }: Options): Promise<void> {
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    let failure: ApiError | undefined;
    try {
      onState({ is: "connecting" });
      const { lastEventId } = position;
      const response = await sendForResponse("GET", path, {
        signal,
        headers: {
          accept: "text/event-stream",
          ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
        },
      });
      onState({ is: "live" });
      retryMs = FIRST_RETRY_MS;
      const feed = createParser({
        onEvent,
        onId: (id) => {
          position.lastEventId = id;
        },
      });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) feed(read.value);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError) {
        if ([400, 401, 403, 404].includes(error.status)) throw error;
        failure = error;
      }
    }
    if (signal.aborted) return;
    onState({ is: "waiting", error: failure, retryMs });
    await pause(retryMs, signal);
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2);
  }
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
