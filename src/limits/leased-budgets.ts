import type { Budget, BudgetOptions, Budgets } from "./budgets.ts";

/** Amounts by owner. */
export type Slices = readonly (readonly [owner: string, amount: number])[];

/** Messages of a process to the supervisor, which owns the budgets. */
export type LeaseRequest =
  | {
      readonly type: "lease";
      readonly budget: string;
      readonly owner: string;
      /** Amount that the process must hold to continue, including its current slices. */
      readonly need: number;
      /** Amount that the process would like to hold. */
      readonly want: number;
      /** Whether the process waits for `need`. Otherwise the supervisor grants only unleased amounts. */
      readonly isWaiting: boolean;
      readonly total: number;
      readonly limit: number;
      /** Whether processes can free amounts that they use for this owner. */
      readonly canFree: boolean;
    }
  | {
      readonly type: "returned";
      readonly budget: string;
      readonly slices: Slices;
      /** Number of the `recall` to which this message is the reply. */
      readonly recall?: number;
    };

/** Messages of the supervisor to a process. */
export type LeaseReply =
  | {
      readonly type: "leased";
      readonly budget: string;
      readonly owner: string;
      readonly amount: number;
      /** Whether the process now holds `need`. */
      readonly isEnough: boolean;
    }
  /** Asks for all unused slices. */
  | {
      readonly type: "recall";
      readonly budget: string;
      readonly recall: number;
      /** An owner for which the process should also free used amounts. */
      readonly shortOf?: string | undefined;
    };

export interface LeasedBudgets extends Budgets {
  readonly receive: (reply: LeaseReply) => void;
  /** Returns slices that were not used since the last call. Called at short intervals. */
  readonly flush: () => void;
}

export interface LeasedBudgetsOptions {
  readonly send: (request: LeaseRequest) => void;
  /** Number of processes that share the budgets. */
  readonly processes: number;
  /** Maximum time in ms to wait for the supervisor. */
  readonly waitMs?: number;
}

const WAIT_MS = 1_000;
const SLICE_BYTES = 1024 * 1024;
/** Maximum amount that an owner uses in a process before the supervisor has granted it. It saves small amounts the wait. */
const OWNER_CREDIT = 64 * 1024;
/** Part of a budget that all processes together use as credit. The supervisor leases only the rest. */
const CREDIT_PART = 1 / 16;

/**
 * Opens budgets that several processes share. The supervisor owns each budget, and leases slices of it to the processes. A process takes
 * from its slices at once. It asks for a larger slice before it needs it, and returns unused slices.
 */
export function createLeasedBudgets({
  send,
  processes,
  waitMs = WAIT_MS,
}: LeasedBudgetsOptions): LeasedBudgets {
  const budgets = new Map<string, LeasedBudget>();
  return {
    open(name, options) {
      const opened = new LeasedBudget(name, { ...options, processes, waitMs, send });
      budgets.set(name, opened);
      return opened;
    },
    receive(reply) {
      const budget = budgets.get(reply.budget);
      if (reply.type === "leased") budget?.add(reply);
      else budget?.recall(reply);
    },
    flush() {
      for (const budget of budgets.values()) budget.returnIdle();
    },
  };
}

interface Waiting {
  readonly amount: number;
  readonly settle: (isTaken: boolean) => void;
}

interface Share {
  used: number;
  leased: number;
  /** Maximum of `used` since the last call of `returnIdle`. */
  peak: number;
  /** The amount for which the process is asking the supervisor. 0 if it asks before it needs more, and `undefined` if it does not ask. */
  asking: number | undefined;
  /** Whether the supervisor had nothing left in this interval. */
  isShort: boolean;
  waiting: Waiting[];
}

type Options = BudgetOptions & Required<LeasedBudgetsOptions>;

class LeasedBudget implements Budget {
  readonly #name: string;
  readonly #options: Options;
  readonly #slice: number;
  readonly #credit: number;
  readonly #shares = new Map<string, Share>();
  /** Amount that all owners use beyond their slices. */
  #onCredit = 0;

  constructor(name: string, options: Options) {
    const { total, processes, slice = SLICE_BYTES } = options;
    this.#name = name;
    this.#options = options;
    this.#slice = slice;
    this.#credit = slice === 0 ? 0 : (total * CREDIT_PART) / processes;
  }

  take(owner: string, amount: number): boolean | Promise<boolean> {
    const share = this.#findOrAdd(owner);
    if (share.waiting.length > 0 || !this.#fits(owner, share, amount))
      return this.#wait(owner, share, amount);
    this.#use(owner, share, amount);
    return true;
  }

  giveBack(owner: string, amount: number): void {
    const share = this.#shares.get(owner);
    if (share === undefined) return;
    this.#update(share, share.used - amount, share.leased);
    this.#serve(owner, share);
  }

  add({ owner, amount, isEnough }: Extract<LeaseReply, { type: "leased" }>): void {
    const share = this.#findOrAdd(owner);
    const { asking = 0 } = share;
    share.asking = undefined;
    share.isShort = !isEnough || amount === 0;
    this.#update(share, share.used, share.leased + amount);
    this.#serve(owner, share);
    if (!isEnough && asking > 0) {
      // Larger amounts do not fit either.
      for (const each of share.waiting) if (each.amount >= asking) each.settle(false);
      share.waiting = share.waiting.filter((each) => each.amount < asking);
    }
    if (share.waiting.length > 0) this.#ask(owner, share);
  }

  recall({ recall, shortOf }: Extract<LeaseReply, { type: "recall" }>): void {
    if (shortOf !== undefined) this.#options.onShortage?.(shortOf);
    const slices = this.#reclaim(({ used }) => used);
    this.#options.send({ type: "returned", budget: this.#name, slices, recall });
  }

  returnIdle(): void {
    const slices = this.#reclaim((share) => {
      const { peak, used, leased, waiting } = share;
      share.peak = used;
      share.isShort = false;
      return waiting.length > 0 ? leased : peak;
    });
    for (const [owner, { used, leased, asking, waiting }] of this.#shares)
      if (used === 0 && leased === 0 && asking === undefined && waiting.length === 0)
        this.#shares.delete(owner);
    if (slices.length > 0) this.#options.send({ type: "returned", budget: this.#name, slices });
  }

  /** Shrinks each slice to the amount that `keep` returns, and returns the rest. */
  #reclaim(keep: (share: Share) => number): Slices {
    const slices: (readonly [string, number])[] = [];
    for (const [owner, share] of this.#shares) {
      const spare = share.leased - keep(share);
      if (spare <= 0) continue;
      share.leased -= spare;
      slices.push([owner, spare]);
    }
    return slices;
  }

  #findOrAdd(owner: string): Share {
    const known = this.#shares.get(owner);
    if (known !== undefined) return known;
    const added: Share = { used: 0, leased: 0, peak: 0, asking: undefined, isShort: false, waiting: [] };
    this.#shares.set(owner, added);
    return added;
  }

  #fits(owner: string, { used, leased }: Share, amount: number): boolean {
    const uncovered = used + amount - leased;
    if (uncovered <= 0) return true;
    const before = Math.max(0, used - leased);
    return (
      this.#onCredit + uncovered - before <= this.#credit &&
      uncovered <= this.#ownerCredit(this.#limitOf(owner))
    );
  }

  /** Returns a small part of the owner's limit, so that all processes together hardly exceed it. */
  #ownerCredit(limit: number): number {
    return Math.min(OWNER_CREDIT, (limit * CREDIT_PART) / this.#options.processes);
  }

  #limitOf(owner: string): number {
    return this.#options.limitOf?.(owner) ?? this.#options.total / 2;
  }

  #update(share: Share, used: number, leased: number): void {
    const before = Math.max(0, share.used - share.leased);
    share.used = used;
    share.leased = leased;
    this.#onCredit += Math.max(0, used - leased) - before;
  }

  #use(owner: string, share: Share, amount: number): void {
    const used = share.used + amount;
    this.#update(share, used, share.leased);
    share.peak = Math.max(share.peak, used);
    if (used < OWNER_CREDIT / 2 || share.isShort || share.asking !== undefined) return;
    if (share.leased - used < Math.min(this.#slice, used) / 4) this.#ask(owner, share);
  }

  #wait(owner: string, share: Share, amount: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => {
      share.waiting = share.waiting.filter((each) => each !== waiting);
      resolve(false);
    }, this.#options.waitMs);
    const waiting: Waiting = {
      amount,
      settle(isTaken) {
        clearTimeout(timer);
        resolve(isTaken);
      },
    };
    share.waiting.push(waiting);
    this.#ask(owner, share);
    return promise;
  }

  #serve(owner: string, share: Share): void {
    for (
      let next = share.waiting[0];
      next && this.#fits(owner, share, next.amount);
      next = share.waiting[0]
    ) {
      share.waiting.shift();
      this.#use(owner, share, next.amount);
      next.settle(true);
    }
  }

  #ask(owner: string, share: Share): void {
    if (share.asking !== undefined) return;
    const { total, processes, send, onShortage } = this.#options;
    const limit = this.#limitOf(owner);
    const amount = share.waiting[0]?.amount ?? 0;
    const need = share.used + amount;
    const used = share.used + share.waiting.reduce((sum, each) => sum + each.amount, 0);
    share.asking = amount;
    send({
      type: "lease",
      budget: this.#name,
      owner,
      need,
      want: Math.max(need, Math.min(used + Math.min(this.#slice, used), limit)),
      isWaiting: amount > 0,
      total: total - this.#credit * processes,
      limit,
      canFree: onShortage !== undefined,
    });
  }
}
