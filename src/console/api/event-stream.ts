import { sendFor } from "./client.ts";
import { ApiProblem } from "./problem.ts";

/** One event of a stream of server-sent events: its data as it was sent. */
export interface StreamEvent {
  readonly data: string;
}

/** What is told of a stream: an event, or how the line stands. */
export interface StreamListener {
  readonly onEvent: (event: StreamEvent) => void;
  /** `waiting`: it failed and is tried again after that time. */
  readonly onState: (state: StreamState) => void;
}

export type StreamState =
  | { readonly is: "connecting" }
  | { readonly is: "live" }
  | { readonly is: "waiting"; readonly problem: ApiProblem | undefined; readonly retryMs: number };

interface Options extends StreamListener {
  readonly path: string;
  /** Where the reader stands; it is moved on as events come, so that another stream goes on from there. */
  readonly position: { lastEventId: string | undefined };
  readonly signal: AbortSignal;
}

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/**
 * Reads a stream until its signal aborts, and goes on from where it stood whenever the line breaks. The browser's own reader
 * cannot: it sends no token.
 *
 * @throws ApiProblem where asking again would be of no use
 */
export async function readStream({ path, position, signal, onEvent, onState }: Options): Promise<void> {
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    let problem: ApiProblem | undefined;
    try {
      onState({ is: "connecting" });
      const { lastEventId } = position;
      const response = await sendFor("GET", path, {
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
      if (error instanceof ApiProblem) {
        if ([400, 401, 403, 404].includes(error.status)) throw error;
        problem = error;
      }
    }
    if (signal.aborted) return;
    onState({ is: "waiting", problem, retryMs });
    await pause(retryMs, signal);
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2);
  }
}

/**
 * Takes the text of an event stream in pieces (WHATWG HTML, section 9.2.6). A line may end by CR, LF or both, and be cut anywhere; an
 * event without data moves the reader on and is no event.
 */
export function createParser(on: {
  readonly onEvent: (event: StreamEvent) => void;
  readonly onId: (id: string) => void;
}): (text: string) => void {
  let rest = "";
  let data: string[] = [];
  let id: string | undefined;
  function take(line: string): void {
    if (line === "") {
      if (data.length > 0) on.onEvent({ data: data.join("\n") });
      // The reader stands behind the event once it is there as a whole.
      if (id !== undefined) on.onId(id);
      data = [];
      return;
    }
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else if (name === "id" && !value.includes("\0")) id = value;
  }
  return (text) => {
    rest += text;
    // A CR at the end may be the half of a line's end.
    const isHalf = rest.endsWith("\r");
    const lines = (isHalf ? rest.slice(0, -1) : rest).split(/\r\n|\r|\n/);
    rest = (lines.pop() ?? "") + (isHalf ? "\r" : "");
    for (const line of lines) take(line);
  };
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
