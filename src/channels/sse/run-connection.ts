import { OutboundError } from "../../net/outbound.ts";
import type { SourceEnd, SourceRun } from "../source.ts";
import { readCursor, writeCursor } from "./cursor.ts";
import { deliveryOf } from "./delivery.ts";
import { FrameWriter, RefusedFrameError } from "./frame-writer.ts";
import { type Frame, type FrameListener, readFrames } from "./frames.ts";
import { Numbering } from "./numbering.ts";
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
  run: SourceRun,
  settings: SseSettings,
  onRetry: (ms: number) => void,
): Promise<SourceEnd> {
  const told = idToTell(run.cursor, settings);
  const ending = new AbortController();
  const outcome: { end?: SourceEnd; failure?: { readonly error: unknown } } = {};
  const finish = (end: SourceEnd): void => {
    outcome.end ??= end;
    ending.abort();
  };
  const signal = AbortSignal.any([run.signal, ending.signal]);
  const writer = new FrameWriter(run, (error) => {
    outcome.failure = { error };
    ending.abort();
  });
  const numbering = new Numbering(told);
  const listener: FrameListener = {
    onFrame(frame) {
      if (!ending.signal.aborted && hasFittingId(frame.id)) take(frame);
    },
    onCheckpoint(id) {
      if (!ending.signal.aborted && hasFittingId(id)) writer.pass(writeCursor(numbering.checkpoint(id)));
    },
    onRetry,
    onTooLarge() {
      const message = `An event holds more than ${settings.maxEventBytes} bytes of data (maxEventBytes)`;
      finish({ kind: "broken", code: "event_too_large", message });
    },
  };

  function hasFittingId(id: string | undefined): boolean {
    if (id === undefined || id.length <= MAX_ID_CHARS) return true;
    const message = `An id has more than ${MAX_ID_CHARS} characters: the server could not be told where to go on`;
    finish({ kind: "broken", code: "id_too_long", message });
    return false;
  }

  function take(frame: Frame): void {
    const place = numbering.next(frame.id);
    const cursor = writeCursor(place.cursor);
    const isEvent = frame.data !== settings.terminator;
    if (isEvent && settings.eventNames?.includes(frame.event) !== false) {
      writer.write(deliveryOf(frame, place, settings.dataFormat, deps.clock()), cursor);
    } else {
      writer.pass(cursor);
    }
    const { stopOn } = settings;
    if (stopOn && (frame.data === stopOn.data || frame.event === stopOn.event)) {
      finish({ kind: "finished", message: "The event came after which there is no more (stopOn)" });
    } else if (!isEvent) {
      finish({ kind: "done" });
    }
  }

  const { maxConnectionAgeMs, maxEventBytes, url } = settings;
  let aged: NodeJS.Timeout | undefined;

  async function open(): Promise<AsyncIterable<Uint8Array> | undefined> {
    const opening = await openStream(deps, { credentials: run.credentials, settings, told, signal });
    if (opening.kind === "ended") {
      finish(opening.end);
      return undefined;
    }
    run.opened();
    if (run.cursor !== undefined && told === "") {
      run.warn(
        "gap",
        "The server cannot be told where to go on: what it sent between two connections is missing",
      );
    }
    if (maxConnectionAgeMs) {
      aged = setTimeout(() => finish({ kind: "done", notBeforeMs: deps.clock() }), maxConnectionAgeMs);
    }
    return opening.body;
  }

  try {
    await readFrames({ url, maxEventBytes, open, room: () => writer.room(), signal }, listener);
    finish({ kind: "done" });
  } catch (error) {
    if (!signal.aborted) finish(endOf(error));
  } finally {
    clearTimeout(aged);
    await writer.close();
  }
  const { end = { kind: "done" }, failure } = outcome;
  if (failure === undefined || run.signal.aborted) return end;
  if (!(failure.error instanceof RefusedFrameError)) throw failure.error;
  return { kind: "broken", code: "refused_event", message: failure.error.message };
}

/** What the server is told to go on after; empty for nothing. */
function idToTell(cursor: string | undefined, { resume, startAt }: SseSettings): string {
  if (resume.mode === "none") return "";
  if (cursor !== undefined) return readCursor(cursor).lastEventId;
  return startAt === "now" ? "" : startAt.lastEventId;
}

/** What an open stream breaks with. */
function endOf(error: unknown): SourceEnd {
  if (!(error instanceof OutboundError)) throw error;
  const { code, message } = error;
  if (code !== "timeout") return { kind: "failed", code, message };
  return { kind: "failed", code: "idle_timeout", message: "Nothing came for too long (idleTimeoutMs)" };
}
