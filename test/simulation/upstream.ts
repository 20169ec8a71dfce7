import type { SourceEnd, SourceRun } from "../../src/channels/source.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { sleep } from "../../src/lib/sleep.ts";
import type { World } from "./world.ts";

/** A server with a numbered feed for each source. */
export class Upstream {
  readonly #world: World;
  /** Of each feed. */
  readonly length: number;
  readonly #beganMs: number;
  /** Senders end and refuse connections only so long as this is true. */
  isMoody = true;

  constructor(world: World, length: number) {
    this.#world = world;
    this.#beganMs = world.nowMs;
    this.length = length;
  }

  /** Up to which number there is something by now. */
  #written(): number {
    return Math.min(this.length, Math.floor((this.#world.nowMs - this.#beganMs) / 400));
  }

  /** One connection of a stream: sends ahead, a few deliveries at a time. @param clock of the worker, by which it reads `Retry-After` */
  stream = async (run: SourceRun, clock: Clock): Promise<SourceEnd> => {
    const { chance } = this.#world;
    if (this.isMoody && chance.is(0.1)) return this.#refusal(clock());
    run.opened();
    let at = Number(run.cursor ?? 0);
    while (!run.signal.aborted) {
      await sleep(chance.between(5, 800), run.signal);
      if (run.signal.aborted) break;
      const writes: Promise<unknown>[] = [];
      for (let n = 0; n < 4 && at < this.#written(); n++) {
        const numbers = upFrom(at, Math.min(this.#written(), at + 1 + Math.floor(chance.next() * 3)));
        at = numbers.at(-1) ?? at;
        const delivery = deliveryOf(numbers, clock());
        const write = run.ingest(delivery, { cursor: String(at), signal: run.signal });
        // Looked at below, with those that follow it without waiting.
        write.catch(() => {});
        writes.push(write);
        if (chance.is(0.5)) await sleep(chance.between(0, 10), run.signal);
      }
      await Promise.all(writes);
      if (this.isMoody && chance.is(0.1)) return chance.is(0.5) ? { kind: "done" } : this.#refusal(clock());
    }
    return { kind: "done" };
  };

  /** One poll: all that is new, a few at a time. */
  poll = async (run: SourceRun, clock: Clock): Promise<SourceEnd> => {
    const { chance } = this.#world;
    await sleep(chance.between(5, 1_500), run.signal);
    run.signal.throwIfAborted();
    if (this.isMoody && chance.is(0.15)) return this.#refusal(clock());
    let at = Number(run.cursor ?? 0);
    const till = this.#written();
    while (at < till) {
      const numbers = upFrom(at, Math.min(till, at + 5));
      at = numbers.at(-1) ?? at;
      await run.ingest(deliveryOf(numbers, clock()), { cursor: String(at), signal: run.signal });
    }
    return { kind: "done" };
  };

  #refusal(nowMs: number): SourceEnd {
    const { chance } = this.#world;
    const failure = {
      kind: "failed",
      code: "http_503",
      message: "The server answers with the status 503",
    } as const;
    return chance.is(0.3) ? { ...failure, notBeforeMs: nowMs + chance.between(100, 10_000) } : failure;
  }
}

const upFrom = (after: number, last: number): readonly number[] =>
  Array.from({ length: last - after }, (_, i) => after + i + 1);

const deliveryOf = (numbers: readonly number[], nowMs: number) => ({
  headers: {},
  body: Buffer.from(JSON.stringify(numbers)),
  arrivedAtMs: nowMs,
});
