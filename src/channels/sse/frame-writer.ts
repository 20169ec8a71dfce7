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
export class FrameWriter {
  readonly #run: SourceRun;
  readonly #onFailure: (error: unknown) => void;
  readonly #underWay = new Set<Promise<void>>();
  #bytes = 0;
  #cursor: string | undefined;
  #unsaved: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failed = false;
  #wake: (() => void) | undefined;

  constructor(run: SourceRun, onFailure: (error: unknown) => void) {
    this.#run = run;
    this.#onFailure = onFailure;
    this.#cursor = run.cursor;
  }

  /** Undefined where more may be read now; else resolves as soon as that is so. */
  room(): Promise<void> | undefined {
    if (this.#hasRoom()) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  write(delivery: FetchedDelivery, cursor: string): void {
    if (this.#failed) return;
    this.#unsaved = undefined;
    const isMoved = cursor !== this.#cursor;
    this.#cursor = cursor;
    const { signal } = this.#run;
    const bytes = delivery.body.length;
    this.#track(bytes, async () => {
      const result = await this.#run.ingest(delivery, isMoved ? { cursor, signal } : { signal });
      if (result.kind !== "accepted") throw new RefusedFrameError(result.kind);
    });
  }

  /** Moves the cursor past what is not taken: soon, not at once. */
  pass(cursor: string): void {
    if (this.#failed || cursor === (this.#unsaved ?? this.#cursor)) return;
    this.#unsaved = cursor;
    this.#timer ??= setTimeout(() => this.#save(), SAVE_EVERY_MS);
  }

  /** Waits for all that is under way. Nothing may be written afterwards. */
  async close(): Promise<void> {
    this.#save();
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const cursor = this.#unsaved;
    this.#unsaved = undefined;
    if (cursor === undefined || this.#failed) return;
    this.#cursor = cursor;
    this.#track(0, () => this.#run.moveTo(cursor, { signal: this.#run.signal }));
  }

  #track(bytes: number, write: () => Promise<void>): void {
    this.#bytes += bytes;
    const done = write()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#underWay.delete(done);
        this.#bytes -= bytes;
        if (!this.#hasRoom()) return;
        this.#wake?.();
        this.#wake = undefined;
      });
    this.#underWay.add(done);
  }

  #hasRoom(): boolean {
    return this.#failed || (this.#underWay.size < MAX_FRAMES && this.#bytes < MAX_BYTES);
  }

  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#onFailure(error);
  }
}
