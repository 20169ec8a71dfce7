import { StaleSourceError } from "../../bus/errors.ts";

/** Sends a write that changes the version of the stored cursor from `version` to `version + 1`. */
export type SendWrite<T> = (version: number) => Promise<T>;

interface Write {
  readonly version: number;
  /** Whether this write was sent. Redis receives later writes after this one. */
  isSent: boolean;
  readonly done: Promise<void>;
}

/**
 * Sends the writes of one source run in order, without waiting for each response.
 * Redis rejects a write if the previous one has not yet stored its cursor version. This can happen to valid writes when the previous write
 * is still in progress, because it is large or has to quarantine a conflict first. A rejected write has stored no data. It is sent again
 * once the previous write is done, and so are all writes after it.
 */
export class OrderedWrites {
  readonly #isPipelined: boolean;
  #last: Write;
  #failure: { readonly error: unknown } | undefined;

  /**
   * @param options.isPipelined whether a write may be sent before the previous write completes. False on Redis Cluster, where events may
   * become visible before their cursor version.
   */
  constructor(options: { readonly version: number; readonly isPipelined: boolean }) {
    this.#isPipelined = options.isPipelined;
    this.#last = { version: options.version, isSent: true, done: Promise.resolve() };
  }

  /** Sends a write after all earlier writes. After a failed write, no more writes are sent. */
  add<T>(send: SendWrite<T>): Promise<T> {
    if (this.#failure) return Promise.reject(this.#failure.error);
    const before = this.#last;
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    const write: Write = { version: before.version + 1, isSent: false, done };
    this.#last = write;
    done.catch(() => {});
    const sent = this.#sendInOrder(before, write, send);
    // Drops the result of the write. If `done` resolved to it, it would stay in memory until the next write.
    sent.then(
      () => resolve(),
      (error: unknown) => {
        this.#failure ??= { error };
        reject(error);
      },
    );
    return sent;
  }

  /** Resolves when all writes have succeeded or failed. Never rejects. */
  settled(): Promise<void> {
    return this.#last.done.then(noop, noop);
  }

  async #sendInOrder<T>(before: Write, write: Write, send: SendWrite<T>): Promise<T> {
    if (!this.#isPipelined || !before.isSent) await before.done;
    if (this.#failure) throw this.#failure.error;
    write.isSent = true;
    try {
      return await send(before.version);
    } catch (error) {
      if (!(error instanceof StaleSourceError) || error.stale !== "cursor") throw error;
      write.isSent = false;
      await before.done;
      write.isSent = true;
      return send(before.version);
    }
  }
}

const noop = (): void => {};
