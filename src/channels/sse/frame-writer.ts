import type { FetchedDelivery, StreamRun } from "../source.ts";
import { formatSseCursor, parseSseCursor, type SseCursor } from "./cursor.ts";

/** Maximum number of events that are read but not yet written. One batch can be collected while another batch is being written. */
const MAX_FRAMES = 512;
const MAX_BYTES = 4 * 1024 * 1024;
/** Maximum number of events in one write. The other half of `MAX_FRAMES` can be collected meanwhile. */
const MAX_GATHERED_FRAMES = MAX_FRAMES / 2;
const MAX_GATHERED_BYTES = MAX_BYTES / 4;
/** Minimum interval between writes that only store a new cursor, without publishing events. */
const SAVE_EVERY_MS = 1000;

/**
 * Thrown when an event could neither be published nor quarantined. Later events must not be written, because their cursor would skip this
 * event.
 */
export class RejectedFrameError extends Error {
  override readonly name = "RejectedFrameError";
}

/**
 * Writes events in order and in batches. Several writes may be in flight. After a failed write, sends no more writes and calls `onFailure`
 * once.
 */
export class FrameWriter {
  readonly #run: StreamRun;
  readonly #onFailure: (error: unknown) => void;
  /** Number of writes in flight. */
  #writes = 0;
  /** Number of events that are being written or wait for the next batch. */
  #frames = 0;
  #bytes = 0;
  #gathered: FetchedDelivery[] = [];
  #cursors: SseCursor[] = [];
  #gatheredBytes = 0;
  #cursor: SseCursor | undefined;
  #unsaved: SseCursor | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failed = false;
  #wake: (() => void) | undefined;
  #onIdle: (() => void) | undefined;

  constructor(run: StreamRun, onFailure: (error: unknown) => void) {
    this.#run = run;
    this.#onFailure = onFailure;
    this.#cursor = run.cursor === undefined ? undefined : parseSseCursor(run.cursor);
  }

  /** Waits until another event may be read. Returns `undefined` if no wait is needed. */
  waitForRoom(): Promise<void> | undefined {
    if (this.#hasRoom()) return undefined;
    this.#send();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Adds an event to the current batch. The batch is sent when it is full or `flush` is called. */
  write(delivery: FetchedDelivery, to: SseCursor): void {
    if (this.#failed) return;
    const size = delivery.body.length;
    this.#unsaved = undefined;
    this.#cursor = to;
    this.#gathered.push(delivery);
    this.#cursors.push(to);
    this.#frames += 1;
    this.#bytes += size;
    this.#gatheredBytes += size;
    if (this.#gathered.length >= MAX_GATHERED_FRAMES || this.#gatheredBytes >= MAX_GATHERED_BYTES)
      this.#send();
  }

  /** Sends the current batch. If another write is in flight, sends the batch after that write, so that more events can join. */
  flush(): void {
    if (this.#writes === 0) this.#send();
  }

  /** Moves the cursor past an event that is not published. Several moves are combined into one delayed write. */
  skip(to: SseCursor): void {
    if (this.#failed || isSame(to, this.#unsaved ?? this.#cursor)) return;
    this.#unsaved = to;
    this.#timer ??= setTimeout(() => this.#save(), SAVE_EVERY_MS);
  }

  /** Sends the last batch and waits for all writes. No event may be added afterwards. */
  async close(): Promise<void> {
    this.#send();
    this.#save();
    if (this.#writes === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #hasRoom(): boolean {
    return this.#failed || (this.#frames < MAX_FRAMES && this.#bytes < MAX_BYTES);
  }

  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#gathered = [];
    this.#onFailure(error);
  }

  /** Waits until a write has completed and updates the counters. Never rejects. */
  async #track(write: Promise<void>, count: number, size: number): Promise<void> {
    this.#writes += 1;
    try {
      await write;
    } catch (error) {
      this.#fail(error);
    }
    this.#writes -= 1;
    this.#frames -= count;
    this.#bytes -= size;
    this.flush();
    if (this.#writes === 0) this.#onIdle?.();
    if (!this.#hasRoom()) return;
    this.#wake?.();
    this.#wake = undefined;
  }

  async #ingest(deliveries: readonly FetchedDelivery[], after: readonly SseCursor[]): Promise<void> {
    const { signal } = this.#run;
    const cursorAfter = (n: number): string => formatSseCursor(after[n] ?? NO_POSITION);
    const results = await this.#run.ingestAll(deliveries, { cursorAfter, signal });
    for (const { kind } of results) if (kind !== "accepted") throw new RejectedFrameError(kind);
  }

  #send(): void {
    if (this.#gathered.length === 0) return;
    const [deliveries, cursors, size] = [this.#gathered, this.#cursors, this.#gatheredBytes];
    this.#gathered = [];
    this.#cursors = [];
    this.#gatheredBytes = 0;
    void this.#track(this.#ingest(deliveries, cursors), deliveries.length, size);
  }

  #save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const skipped = this.#unsaved;
    this.#unsaved = undefined;
    if (skipped === undefined || this.#failed) return;
    this.#cursor = skipped;
    this.#send();
    void this.#track(this.#run.moveTo(formatSseCursor(skipped), { signal: this.#run.signal }), 0, 0);
  }
}

const NO_POSITION: SseCursor = { lastEventId: "", n: 0 };

const isSame = (a: SseCursor, b: SseCursor | undefined): boolean =>
  a.lastEventId === b?.lastEventId && a.n === b.n;
