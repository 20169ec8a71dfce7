import { settled, type TimeKeeper, VirtualTimer, within } from "./virtual-time.ts";

/** Seeded random numbers, so that a seed always gives the same history. */
export interface Chance {
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  readonly next: () => number;
  /** Returns true with probability `share`. */
  readonly is: (share: number) => boolean;
  /** Returns a number from `from` (inclusive) to `to` (exclusive). */
  readonly between: (from: number, to: number) => number;
  readonly pick: <T>(from: readonly T[]) => T;
}

/** Creates a "mulberry32" generator. */
export function createChance(seed: number): Chance {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    is: (share) => next() < share,
    between: (from, to) => from + next() * (to - from),
    pick(from) {
      const one = from[Math.floor(next() * from.length)];
      if (one === undefined) throw new Error("cannot pick from an empty list");
      return one;
    },
  };
}

/** Start of the virtual time. Far in the future of the real clock, so that Redis keys do not expire during a test. */
export const BEGINNING_MS = Date.UTC(2040, 0, 1);

interface ScheduledEvent {
  atMs: number;
  readonly process: Process | undefined;
  readonly timer: VirtualTimer;
  readonly run: () => unknown;
}

/** A simulated process that can be paused and killed: a worker or the server. */
export class Process implements TimeKeeper {
  readonly name: string;
  readonly #world: World;
  isDead = false;
  /** Runs no code before this time, like after SIGSTOP. Its clocks continue. */
  pausedUntilMs = 0;
  /** Offset of its wall clock from the true time. */
  wallSkewMs = 0;

  /** Whether its code uses the real clocks and timers. */
  readonly isReal: boolean;

  constructor(world: World, name: string, { isReal = false }: { readonly isReal?: boolean } = {}) {
    this.#world = world;
    this.name = name;
    this.isReal = isReal;
  }

  nowMs = (): number => this.#world.nowMs;
  random = (): number => this.#world.chance.next();
  wallMs = (): number => Math.floor(BEGINNING_MS + this.#world.nowMs + this.wallSkewMs);
  startTimer = (delayMs: number, run: () => void): VirtualTimer => this.#world.in(delayMs, this, run);
  get isPaused(): boolean {
    return this.pausedUntilMs > this.#world.nowMs;
  }
}

/** Event loop of the simulation: runs scheduled events in order of virtual time. */
export class World {
  readonly chance: Chance;
  /** Virtual ms since the start. */
  nowMs = 0;
  steps = 0;
  readonly #queue: ScheduledEvent[] = [];

  constructor(seed: number) {
    this.chance = createChance(seed);
  }

  in(delayMs: number, process: Process | undefined, run: () => unknown): VirtualTimer {
    const timer = new VirtualTimer();
    this.#insert({ atMs: this.nowMs + delayMs, process, timer, run });
    return timer;
  }

  /** Runs the next event and all promise callbacks that follow from it. Returns false if no event is left. */
  async step(): Promise<boolean> {
    const next = this.#queue.shift();
    if (next === undefined) return false;
    const { process, timer, run } = next;
    if (timer.isOver || process?.isDead) return true;
    if (process && process.pausedUntilMs > next.atMs) {
      next.atMs = process.pausedUntilMs;
      this.#insert(next);
      return true;
    }
    this.nowMs = Math.max(this.nowMs, next.atMs);
    this.steps++;
    timer.isOver = true;
    await (process === undefined || process.isReal ? run() : within(process, run));
    await settled();
    return true;
  }

  /** Inserts an event in order of time. Events of the same time keep their order of insertion. */
  #insert(one: ScheduledEvent): void {
    let place = this.#queue.length;
    while (place > 0 && (this.#queue[place - 1]?.atMs ?? 0) > one.atMs) place--;
    this.#queue.splice(place, 0, one);
  }
}
