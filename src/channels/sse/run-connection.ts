import { OutboundError } from "../../net/outbound.ts";
import { failed, refused } from "../pull/ends.ts";
import type { FetchedDelivery, SourceEnd, StreamRun } from "../source.ts";
import { readCursor } from "./cursor.ts";
import {
  EventStreamParser,
  EventTooLargeError,
  type Frame,
  type StreamMessage,
} from "./event-stream-parser.ts";
import { createFrameWriter, RefusedFrameError } from "./frame-writer.ts";
import { createNumbering, type EventPosition } from "./numbering.ts";
import { type OpenStreamDeps, openStream } from "./open-stream.ts";
import { MAX_ID_CHARS, type SseSettings } from "./settings.ts";

/**
 * One connection, from the request to its end. Nothing is read faster than it can be written: what waits is in the sender's
 * socket.
 *
 * @param onRetry told what the server's `retry` asks for, in ms
 * @throws what `run.ingest` and `run.moveTo` throw
 */
export async function runConnection(
  deps: OpenStreamDeps,
  run: StreamRun,
  settings: SseSettings,
  onRetry: (ms: number) => void,
): Promise<SourceEnd> {
  const resumeId = resumeIdOf(run.cursor, settings);
  const ending = new AbortController();
  const outcome: { end?: SourceEnd; failure?: { readonly error: unknown } } = {};
  const finish = (end: SourceEnd): void => {
    outcome.end ??= end;
    ending.abort();
  };
  const signal = AbortSignal.any([run.signal, ending.signal]);
  const writer = createFrameWriter(run, (error) => {
    outcome.failure = { error };
    ending.abort();
  });
  const numbering = createNumbering(resumeId);

  function take(message: StreamMessage): void {
    if (message.kind === "retry") {
      onRetry(message.ms);
    } else if (message.id !== undefined && message.id.length > MAX_ID_CHARS) {
      const text = `An id has more than ${MAX_ID_CHARS} characters: the server could not be told where to go on`;
      finish(refused("id_too_long", text));
    } else if (message.kind === "checkpoint") {
      writer.pass(numbering.checkpoint(message.id));
    } else {
      takeFrame(message);
    }
  }

  function takeFrame(frame: Frame): void {
    const position = numbering.next(frame.id);
    const isEvent = frame.data !== settings.terminator;
    if (isEvent && settings.eventNames?.includes(frame.event) !== false) {
      writer.write(deliveryOf(frame, position, settings.dataFormat, deps.clock()), position.cursor);
    } else {
      writer.pass(position.cursor);
    }
    const { stopOn } = settings;
    if (stopOn && (frame.data === stopOn.data || frame.event === stopOn.event)) {
      finish({ kind: "finished", message: "The event came after which there is no more (stopOn)" });
    } else if (!isEvent) {
      finish({ kind: "done" });
    }
  }

  async function readBody(body: AsyncIterable<Uint8Array>): Promise<void> {
    const parser = new EventStreamParser({ maxEventBytes: settings.maxEventBytes });
    for await (const chunk of body) {
      for (const message of parser.read(chunk)) {
        take(message);
        const room = writer.room();
        if (room !== undefined) await room;
        if (signal.aborted) return;
      }
      writer.flush();
    }
    finish({ kind: "done" });
  }

  let aged: NodeJS.Timeout | undefined;
  try {
    const opening = await openStream(deps, { credentials: run.credentials, settings, resumeId, signal });
    if ("kind" in opening) {
      finish(opening);
    } else {
      run.opened();
      if (run.cursor !== undefined && resumeId === "") run.warn("gap", GAP);
      const { maxConnectionAgeMs } = settings;
      if (maxConnectionAgeMs) {
        aged = setTimeout(() => finish({ kind: "done", notBeforeMs: deps.clock() }), maxConnectionAgeMs);
      }
      await readBody(opening);
    }
  } catch (error) {
    if (!signal.aborted) finish(endOf(error));
  } finally {
    clearTimeout(aged);
    await writer.close();
  }
  const { end = { kind: "done" }, failure } = outcome;
  if (failure === undefined || run.signal.aborted) return end;
  if (!(failure.error instanceof RefusedFrameError)) throw failure.error;
  return refused("refused_event", failure.error.message);
}

const GAP = "The server cannot be told where to go on: what it sent between two connections is missing";

/** The id that the server is to go on after; empty where there is none. */
function resumeIdOf(cursor: string | undefined, { resume, startAt }: SseSettings): string {
  if (resume.mode === "none") return "";
  if (cursor !== undefined) return readCursor(cursor).lastEventId;
  return startAt === "now" ? "" : startAt.lastEventId;
}

/** The end of a stream that breaks. */
function endOf(error: unknown): SourceEnd {
  if (error instanceof EventTooLargeError) return refused("event_too_large", error.message);
  if (!(error instanceof OutboundError)) throw error;
  return error.code === "timeout"
    ? failed("idle_timeout", "Nothing came for too long (idleTimeoutMs)")
    : failed(error.code, error.message);
}

const CONTENT_TYPES: Readonly<Record<SseSettings["dataFormat"], string>> = {
  json: "application/json",
  text: "text/plain",
  jsonLines: "application/x-ndjson",
};

/** One frame as a delivery: its data is the body, what else it says stands in headers, where `$event` and `$lastEventId` read it. */
function deliveryOf(
  { data, event }: Frame,
  { deliveryId, lastEventId }: EventPosition,
  dataFormat: SseSettings["dataFormat"],
  arrivedAtMs: number,
): FetchedDelivery {
  const headers = { "content-type": CONTENT_TYPES[dataFormat], event };
  const body = Buffer.from(data);
  return deliveryId === undefined
    ? { headers, body, arrivedAtMs }
    : { headers: { ...headers, "last-event-id": lastEventId }, body, arrivedAtMs, deliveryId };
}
