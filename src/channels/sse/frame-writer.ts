import type { FetchedDelivery, SourceRun } from "../source.ts";

/** No more is read while so many frames are on their way: enough to fill a batch while one is written. */
const MAX_FRAMES = 512;
const MAX_BYTES = 4 * 1024 * 1024;
/** Events that are passed over move the cursor no more often. */
const SAVE_EVERY_MS = 1000;

/** A frame that was neither published nor kept: what was read after it is not to be counted on. */
export class RefusedFrameError extends Error {
  override readonly name = "RefusedFrameError";
}

/**
 * Writes frames in their order, many on their way at a time. The first failure ends it: nothing is sent after it, and `onFailure`
 * is told once.
 */
export function createFrameWriter(run: SourceRun, onFailure: (error: unknown) => void) {
  const { signal } = run;
  const underWay = new Set<Promise<void>>();
  let bytes = 0;
  let cursor = run.cursor;
  let unsaved: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failed = false;
  let wake: (() => void) | undefined;

  const hasRoom = (): boolean => failed || (underWay.size < MAX_FRAMES && bytes < MAX_BYTES);

  function fail(error: unknown): void {
    if (failed) return;
    failed = true;
    onFailure(error);
  }

  function track(size: number, write: () => Promise<void>): void {
    bytes += size;
    const done = write()
      .catch(fail)
      .finally(() => {
        underWay.delete(done);
        bytes -= size;
        if (!hasRoom()) return;
        wake?.();
        wake = undefined;
      });
    underWay.add(done);
  }

  function save(): void {
    clearTimeout(timer);
    timer = undefined;
    const passed = unsaved;
    unsaved = undefined;
    if (passed === undefined || failed) return;
    cursor = passed;
    track(0, () => run.moveTo(passed, { signal }));
  }

  return {
    /** Undefined where more may be read now; else resolves as soon as that is so. */
    room(): Promise<void> | undefined {
      if (hasRoom()) return undefined;
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
    write(delivery: FetchedDelivery, to: string): void {
      if (failed) return;
      unsaved = undefined;
      const isMoved = to !== cursor;
      cursor = to;
      track(delivery.body.length, async () => {
        const result = await run.ingest(delivery, isMoved ? { cursor: to, signal } : { signal });
        if (result.kind !== "accepted") throw new RefusedFrameError(result.kind);
      });
    },
    /** Moves the cursor past what is not taken: soon, not at once. */
    pass(to: string): void {
      if (failed || to === (unsaved ?? cursor)) return;
      unsaved = to;
      timer ??= setTimeout(save, SAVE_EVERY_MS);
    },
    /** Waits for all that is under way. Nothing may be written afterwards. */
    async close(): Promise<void> {
      save();
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}
