import type { FetchedDelivery, StreamRun } from "../source.ts";
import { readCursor, type SseCursor, writeCursor } from "./cursor.ts";

/** No more is read while so many frames are on their way: enough to fill a batch while one is written. */
const MAX_FRAMES = 512;
const MAX_BYTES = 4 * 1024 * 1024;
/** What came at once goes in one write, of no more than this: the next one is gathered while it is under way. */
const MAX_GATHERED_FRAMES = MAX_FRAMES / 2;
const MAX_GATHERED_BYTES = MAX_BYTES / 4;
/** Events that are passed over move the cursor no more often. */
const SAVE_EVERY_MS = 1000;

/** A frame that was neither published nor kept: what was read after it is not to be counted on. */
export class RefusedFrameError extends Error {
  override readonly name = "RefusedFrameError";
}

/**
 * Writes frames in their order, those that come at once together, many on their way at a time. The first failure ends it: nothing is
 * sent after it, and `onFailure` is told once.
 */
export function createFrameWriter(run: StreamRun, onFailure: (error: unknown) => void) {
  const { signal } = run;
  const underWay = new Set<Promise<void>>();
  /** Under way, and gathered. */
  let frames = 0;
  let bytes = 0;
  let gathered: FetchedDelivery[] = [];
  let cursors: SseCursor[] = [];
  let gatheredBytes = 0;
  let cursor = run.cursor === undefined ? undefined : readCursor(run.cursor);
  let unsaved: SseCursor | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failed = false;
  let wake: (() => void) | undefined;

  const hasRoom = (): boolean => failed || (frames < MAX_FRAMES && bytes < MAX_BYTES);

  function fail(error: unknown): void {
    if (failed) return;
    failed = true;
    gathered = [];
    onFailure(error);
  }

  function track(write: Promise<void>, count: number, size: number): void {
    const done = write.catch(fail).finally(() => {
      underWay.delete(done);
      frames -= count;
      bytes -= size;
      sendIfIdle();
      if (!hasRoom()) return;
      wake?.();
      wake = undefined;
    });
    underWay.add(done);
  }

  async function ingest(deliveries: readonly FetchedDelivery[], after: readonly SseCursor[]): Promise<void> {
    const cursorAfter = (n: number): string => writeCursor(after[n] ?? NOWHERE);
    const results = await run.ingestAll(deliveries, { cursorAfter, signal });
    for (const { kind } of results) if (kind !== "accepted") throw new RefusedFrameError(kind);
  }

  function send(): void {
    if (gathered.length === 0) return;
    track(ingest(gathered, cursors), gathered.length, gatheredBytes);
    gathered = [];
    cursors = [];
    gatheredBytes = 0;
  }

  function sendIfIdle(): void {
    if (underWay.size === 0) send();
  }

  function save(): void {
    clearTimeout(timer);
    timer = undefined;
    const passed = unsaved;
    unsaved = undefined;
    if (passed === undefined || failed) return;
    cursor = passed;
    send();
    track(run.moveTo(writeCursor(passed), { signal }), 0, 0);
  }

  return {
    /** Undefined where more may be read now; else resolves as soon as that is so. */
    room(): Promise<void> | undefined {
      if (hasRoom()) return undefined;
      send();
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
    /** Gathers a frame: it goes with those before it where they are enough, else once `flush` is called. */
    write(delivery: FetchedDelivery, to: SseCursor): void {
      if (failed) return;
      unsaved = undefined;
      cursor = to;
      gathered.push(delivery);
      cursors.push(to);
      frames += 1;
      bytes += delivery.body.length;
      gatheredBytes += delivery.body.length;
      if (gathered.length >= MAX_GATHERED_FRAMES || gatheredBytes >= MAX_GATHERED_BYTES) send();
    },
    /** Sends what is gathered: now, or with what comes until the write under way is done. */
    flush: sendIfIdle,
    /** Moves the cursor past what is not taken: soon, not at once. */
    pass(to: SseCursor): void {
      if (failed || isSame(to, unsaved ?? cursor)) return;
      unsaved = to;
      timer ??= setTimeout(save, SAVE_EVERY_MS);
    },
    /** Waits for all that is under way. Nothing may be written afterwards. */
    async close(): Promise<void> {
      send();
      save();
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

const NOWHERE: SseCursor = { lastEventId: "", n: 0 };

const isSame = (a: SseCursor, b: SseCursor | undefined): boolean =>
  a.lastEventId === b?.lastEventId && a.n === b.n;
