import type { Clock } from "../../lib/clock.ts";
import type { Body } from "../../net/body.ts";
import { OutboundError } from "../../net/outbound.ts";
import { failed, rejected } from "../pull/source-end.ts";
import type { FetchedDelivery, SourceEnd, StreamRun } from "../source.ts";
import { MAX_ID_CHARS, type SseConfig } from "./config.ts";
import { parseSseCursor } from "./cursor.ts";
import {
  EventStreamParser,
  EventTooLargeError,
  type Frame,
  type StreamMessage,
} from "./event-stream-parser.ts";
import { FrameWriter, RejectedFrameError } from "./frame-writer.ts";
import { type EventPosition, Numbering } from "./numbering.ts";
import { type OpenStreamDeps, openStream } from "./open-stream.ts";

/**
 * Opens an event stream and publishes its events until the connection ends. Stops reading while writes are slow, so that unread data stays
 * in the socket.
 * @param onRetry called with the server's `retry` value in ms
 * @throws the errors of `run.ingest` and `run.moveTo`
 */
export async function runConnection(
  deps: OpenStreamDeps,
  run: StreamRun,
  config: SseConfig,
  onRetry: (ms: number) => void,
): Promise<SourceEnd> {
  let resumeId = findResumeId(run.cursor, config);
  let hasGap = run.cursor !== undefined && resumeId === "";
  let opening = await openStream(deps, run, config, resumeId);
  if ("kind" in opening && opening.kind === "expired" && config.resume.onExpired === "skip") {
    resumeId = "";
    hasGap = true;
    opening = await openStream(deps, run, config, resumeId);
  }
  if ("kind" in opening) return opening.kind === "expired" ? opening.end : opening;
  run.opened();
  if (hasGap) run.warn("gap", GAP);
  return new Connection({ clock: deps.clock, run, config, resumeId, body: opening, onRetry }).read();
}

interface ConnectionOptions {
  readonly clock: Clock;
  readonly run: StreamRun;
  readonly config: SseConfig;
  /** Last event id that was sent to the server. Empty if none was sent. */
  readonly resumeId: string;
  readonly body: Body;
  readonly onRetry: (ms: number) => void;
}

/** State of an open stream. It is a single object to save memory, because a worker may have thousands of streams. */
class Connection {
  readonly #options: ConnectionOptions;
  readonly #writer: FrameWriter;
  readonly #numbering: Numbering;
  #end: SourceEnd | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#numbering = new Numbering(options.resumeId);
    this.#writer = new FrameWriter(options.run, (error) => this.#fail(error));
  }

  async read(): Promise<SourceEnd> {
    const { body, clock, config, run } = this.#options;
    const { maxConnectionAgeMs } = config;
    const aged =
      maxConnectionAgeMs === undefined
        ? undefined
        : setTimeout(() => this.#finish({ kind: "done", notBeforeMs: clock() }), maxConnectionAgeMs);
    try {
      await this.#readBody();
    } catch (error) {
      if (!this.#isOver()) this.#finish(toSourceEnd(error));
    } finally {
      clearTimeout(aged);
      await body.cancel();
      await this.#writer.close();
    }
    const failure = this.#failure;
    if (failure === undefined || run.signal.aborted) return this.#end ?? { kind: "done" };
    if (!(failure.error instanceof RejectedFrameError)) throw failure.error;
    return rejected("refused_event", failure.error.message);
  }

  async #readBody(): Promise<void> {
    const { body, config } = this.#options;
    const parser = new EventStreamParser(config);
    // The chunk is passed as a parameter, because a local variable of the loop would keep it in memory while waiting for the next chunk.
    const readChunk = (chunk: Uint8Array | undefined): boolean | Promise<boolean> =>
      chunk !== undefined && this.#readChunk(parser, chunk);
    while (await body.read().then(readChunk));
  }

  /** Publishes the events in a chunk. Returns false if the connection must not be read any further. */
  async #readChunk(parser: EventStreamParser, chunk: Uint8Array): Promise<boolean> {
    for (const message of parser.read(chunk)) {
      this.#take(message);
      const room = this.#writer.waitForRoom();
      if (room !== undefined) await room;
      if (this.#isOver()) return false;
    }
    this.#writer.flush();
    return true;
  }

  #isOver(): boolean {
    return this.#end !== undefined || this.#failure !== undefined || this.#options.run.signal.aborted;
  }

  /** Stops reading and stores the reason. Later calls have no effect. */
  #finish(end: SourceEnd): void {
    this.#end ??= end;
    void this.#options.body.cancel();
  }

  #fail(error: unknown): void {
    this.#failure = { error };
    void this.#options.body.cancel();
  }

  #take(message: StreamMessage): void {
    if (message.kind === "retry") {
      this.#options.onRetry(message.ms);
    } else if (message.id !== undefined && message.id.length > MAX_ID_CHARS) {
      const text = `The server sent an event id of more than ${MAX_ID_CHARS} characters and could not be sent back to the server`;
      this.#finish(rejected("id_too_long", text));
    } else if (message.kind === "checkpoint") {
      this.#writer.skip(this.#numbering.checkpoint(message.id));
    } else {
      this.#takeFrame(message);
    }
  }

  #takeFrame(frame: Frame): void {
    const { clock, config } = this.#options;
    const { dataFormat, eventNames, stopOn, terminator } = config;
    const position = this.#numbering.next(frame.id);
    const isEvent = frame.data !== terminator;
    if (isEvent && eventNames?.includes(frame.event) !== false) {
      this.#writer.write(toDelivery(frame, position, dataFormat, clock()), position.cursor);
    } else {
      this.#writer.skip(position.cursor);
    }
    if (stopOn && (frame.data === stopOn.data || frame.event === stopOn.event)) {
      this.#finish({ kind: "finished", message: "Received the event that ends the stream (stopOn)" });
    } else if (!isEvent) {
      this.#finish({ kind: "done" });
    }
  }
}

const GAP = "The stream cannot be resumed, so events sent between the two connections are missing";

/** Returns the value for the header `Last-Event-ID`, or an empty string if the stream starts without the header. */
function findResumeId(cursor: string | undefined, { resume, startAt }: SseConfig): string {
  if (resume.mode === "none") return "";
  if (cursor !== undefined) return parseSseCursor(cursor).lastEventId;
  return startAt === "now" ? "" : startAt.lastEventId;
}

function toSourceEnd(error: unknown): SourceEnd {
  if (error instanceof EventTooLargeError) return rejected("event_too_large", error.message);
  if (!(error instanceof OutboundError)) throw error;
  return error.code === "timeout"
    ? failed("idle_timeout", "No data arrived within the idle timeout (idleTimeoutMs)")
    : failed(error.code, error.message);
}

const CONTENT_TYPES: Readonly<Record<SseConfig["dataFormat"], string>> = {
  json: "application/json",
  text: "text/plain",
  jsonLines: "application/x-ndjson",
};

/** Converts an event to a delivery. The event name and id become headers, so that the paths `$event` and `$lastEventId` can read them. */
function toDelivery(
  { data, event }: Frame,
  { deliveryId, lastEventId }: EventPosition,
  dataFormat: SseConfig["dataFormat"],
  arrivedAtMs: number,
): FetchedDelivery {
  const headers = { "content-type": CONTENT_TYPES[dataFormat], event };
  const body = Buffer.from(data);
  return deliveryId === undefined
    ? { headers, body, arrivedAtMs }
    : { headers: { ...headers, "last-event-id": lastEventId }, body, arrivedAtMs, deliveryId };
}
