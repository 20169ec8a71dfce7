import { settled, type TimeKeeper, VirtualTimer, within } from "./virtual-time.ts";

/** Random numbers by a seed: the same seed, the same history. */
export interface Chance {
  /** From 0 to below 1. */
  readonly next: () => number;
  /** True so often. */
  readonly is: (share: number) => boolean;
  /** From one to below the other. */
  readonly between: (from: number, to: number) => number;
  readonly pick: <T>(from: readonly T[]) => T;
}

/** The generator "mulberry32". */
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
      if (one === undefined) throw new Error("nothing to pick from");
      return one;
    },
  };
}

/** Far ahead of the machine's clock: keys that end at some time do not end meanwhile. */
export const BEGINNING_MS = Date.UTC(2040, 0, 1);

interface Happening {
  atMs: number;
  readonly process: Process | undefined;
  readonly timer: VirtualTimer;
  readonly run: () => unknown;
}

/** What can be stopped and killed: a worker, or the server. */
export class Process implements TimeKeeper {
  readonly name: string;
  readonly #world: World;
  isDead = false;
  /** As after SIGSTOP: nothing of it runs before then; its clocks go on. */
  pausedUntilMs = 0;
  /** How far its wall clock is from the true time. */
  wallSkewMs = 0;

  /** What runs in it has the clocks and timers of the machine. */
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

/** Everything that happens, one after the other, in virtual time. */
export class World {
  readonly chance: Chance;
  /** Since the beginning. */
  nowMs = 0;
  steps = 0;
  readonly #queue: Happening[] = [];

  constructor(seed: number) {
    this.chance = createChance(seed);
  }

  in(delayMs: number, process: Process | undefined, run: () => unknown): VirtualTimer {
    const timer = new VirtualTimer();
    this.#insert({ atMs: this.nowMs + delayMs, process, timer, run });
    return timer;
  }

  /** Lets the next thing happen, and all that follows from it at once. False where nothing is left. */
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

  /** In the order of time; those of one moment in the order in which they came. */
  #insert(one: Happening): void {
    let place = this.#queue.length;
    while (place > 0 && (this.#queue[place - 1]?.atMs ?? 0) > one.atMs) place--;
    this.#queue.splice(place, 0, one);
  }
}
