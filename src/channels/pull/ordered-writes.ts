import { StaleSourceError } from "../../bus/errors.ts";

/** Sends a write that makes version `version + 1` of a cursor out of `version`. */
export type SendWrite<T> = (version: number) => Promise<T>;

interface Write {
  readonly version: number;
  /** True from the moment on when whatever is sent follows it. */
  isSent: boolean;
  readonly done: Promise<void>;
}

/**
 * The writes of one run of a source. Keeps them in the order in which they are added, without waiting for each: the bus refuses a
 * write whose predecessor has not made its version. That happens to sound ones too, where the predecessor is still at work: it was
 * large and goes in pieces, or has a conflict to put away first. Nothing of the refused write was written then: it is sent again once
 * the predecessor is through, and so are those behind it, one after the other.
 */
export class OrderedWrites {
  readonly #isPipelined: boolean;
  #last: Write;
  #failure: { readonly error: unknown } | undefined;

  /** @param options.isPipelined false where what one write brings may be seen without its version (Cluster): each waits for the last. */
  constructor(options: { readonly version: number; readonly isPipelined: boolean }) {
    this.#isPipelined = options.isPipelined;
    this.#last = { version: options.version, isSent: true, done: Promise.resolve() };
  }

  /** Sends it after all before it. Once one has failed, no later one is sent. */
  add<T>(send: SendWrite<T>): Promise<T> {
    if (this.#failure) return Promise.reject(this.#failure.error);
    const before = this.#last;
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    const write: Write = { version: before.version + 1, isSent: false, done };
    this.#last = write;
    done.catch(() => {});
    const sent = this.#sendInOrder(before, write, send);
    // What it brought is the caller's: kept here it would stay until the next write.
    sent.then(
      () => resolve(),
      (error: unknown) => {
        this.#failure ??= { error };
        reject(error);
      },
    );
    return sent;
  }

  /** Resolves when none is under way; never rejects. */
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
