import type { SourceEnd, SourceRun } from "../../src/channels/source.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { sleep } from "../../src/lib/sleep.ts";
import type { World } from "./world.ts";

/** Simulated sender with a numbered feed per source. */
export class Upstream {
  readonly #world: World;
  /** Number of events in each feed. */
  readonly length: number;
  readonly #startedMs: number;
  /** Whether the sender randomly rejects and ends connections. */
  failsRandomly = true;

  constructor(world: World, length: number) {
    this.#world = world;
    this.#startedMs = world.nowMs;
    this.length = length;
  }

  /** Returns the number of the last event available now. */
  #written(): number {
    return Math.min(this.length, Math.floor((this.#world.nowMs - this.#startedMs) / 400));
  }

  /**
   * Runs one stream connection. Sends several deliveries without waiting for the writes.
   *
   * @param clock clock of the worker, which interprets `Retry-After`
   */
  stream = async (run: SourceRun, clock: Clock): Promise<SourceEnd> => {
    const { chance } = this.#world;
    if (this.failsRandomly && chance.is(0.1)) return this.#createFailure(clock());
    run.opened();
    let at = Number(run.cursor ?? 0);
    while (!run.signal.aborted) {
      await sleep(chance.between(5, 800), run.signal);
      if (run.signal.aborted) break;
      const writes: Promise<unknown>[] = [];
      for (let n = 0; n < 4 && at < this.#written(); n++) {
        const numbers = numbersAfter(at, Math.min(this.#written(), at + 1 + Math.floor(chance.next() * 3)));
        at = numbers.at(-1) ?? at;
        const delivery = createDelivery(numbers, clock());
        const write = run.ingest(delivery, { cursor: String(at), signal: run.signal });
        // Avoids an unhandled rejection. The error is handled below, together with later writes.
        write.catch(() => {});
        writes.push(write);
        if (chance.is(0.5)) await sleep(chance.between(0, 10), run.signal);
      }
      await Promise.all(writes);
      if (this.failsRandomly && chance.is(0.1))
        return chance.is(0.5) ? { kind: "done" } : this.#createFailure(clock());
    }
    return { kind: "done" };
  };

  /** Runs one poll. Delivers all new events, a few at a time. */
  poll = async (run: SourceRun, clock: Clock): Promise<SourceEnd> => {
    const { chance } = this.#world;
    await sleep(chance.between(5, 1_500), run.signal);
    run.signal.throwIfAborted();
    if (this.failsRandomly && chance.is(0.15)) return this.#createFailure(clock());
    let at = Number(run.cursor ?? 0);
    const till = this.#written();
    while (at < till) {
      const numbers = numbersAfter(at, Math.min(till, at + 5));
      at = numbers.at(-1) ?? at;
      await run.ingest(createDelivery(numbers, clock()), { cursor: String(at), signal: run.signal });
    }
    return { kind: "done" };
  };

  #createFailure(nowMs: number): SourceEnd {
    const { chance } = this.#world;
    const failure = {
      kind: "failed",
      code: "http_503",
      message: "The server responded with status 503",
    } as const;
    return chance.is(0.3) ? { ...failure, notBeforeMs: nowMs + chance.between(100, 10_000) } : failure;
  }
}

const numbersAfter = (after: number, last: number): readonly number[] =>
  Array.from({ length: last - after }, (_, i) => after + i + 1);

const createDelivery = (numbers: readonly number[], nowMs: number) => ({
  headers: {},
  body: Buffer.from(JSON.stringify(numbers)),
  arrivedAtMs: nowMs,
});
