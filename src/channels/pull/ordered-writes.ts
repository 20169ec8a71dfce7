import { StaleSourceError } from "../../bus/errors.ts";

/** Sends a write that makes version `version + 1` of a cursor out of `version`. */
export type SendWrite<T> = (version: number) => Promise<T>;

/** The writes of one run of a source. */
export interface OrderedWrites {
  /** Sends it after all before it. Once one has failed, no later one is sent. */
  readonly add: <T>(send: SendWrite<T>) => Promise<T>;
  /** Resolves when none is under way; never rejects. */
  readonly settled: () => Promise<void>;
}

interface Write {
  readonly version: number;
  /** True from the moment on when whatever is sent follows it. */
  isSent: boolean;
  readonly done: Promise<unknown>;
}

/**
 * Keeps the writes of a run in the order in which they are added, without waiting for each: the bus refuses a write whose
 * predecessor has not made its version. That happens to sound ones too, where the predecessor is still at work: it was large and goes
 * in pieces, or has a conflict to put away first. Nothing of the refused write was written then: it is sent again once the
 * predecessor is through, and so are those behind it, one after the other.
 *
 * @param options.isPipelined false where what one write brings may be seen without its version (Cluster): each waits for the last.
 */
export function createOrderedWrites(options: {
  readonly version: number;
  readonly isPipelined: boolean;
}): OrderedWrites {
  const { isPipelined } = options;
  let last: Write = { version: options.version, isSent: true, done: Promise.resolve() };
  let failure: { readonly error: unknown } | undefined;

  async function sendInOrder<T>(before: Write, write: Write, send: SendWrite<T>): Promise<T> {
    if (!isPipelined || !before.isSent) await before.done;
    if (failure) throw failure.error;
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

  return {
    add(send) {
      if (failure) return Promise.reject(failure.error);
      const before = last;
      const { promise: done, resolve, reject } = Promise.withResolvers<unknown>();
      const write: Write = { version: before.version + 1, isSent: false, done };
      last = write;
      done.catch(() => {});
      const sent = sendInOrder(before, write, send);
      sent.then(resolve, (error: unknown) => {
        failure ??= { error };
        reject(error);
      });
      return sent;
    },
    settled: () => last.done.then(noop, noop),
  };
}

const noop = (): void => {};
