import { setTimeout as delay } from "node:timers/promises";
import { FairBudget } from "../limits/fairness.ts";
import type { LeaseReply, LeaseRequest, Slices } from "../limits/leased-budgets.ts";

/** A process that holds slices of budgets. */
export interface Holder {
  readonly send: (reply: LeaseReply) => void;
}

export interface Leases {
  readonly receive: (request: LeaseRequest, from: Holder) => void;
  /** Takes back all slices of a process that has ended. */
  readonly end: (holder: Holder) => void;
}

/** Maximum time in ms for a process to return its unused slices. A process whose event loop is blocked keeps them. */
const RECALL_MS = 150;
/** Age in ms at which a request is rejected. The process stops waiting a little later. */
const MAX_AGE_MS = 750;
/** Pause in ms after a rejection, so that a flood of requests does not cause a flood of recalls. */
const PAUSE_MS = 10;

type Lease = Extract<LeaseRequest, { type: "lease" }>;

interface Pending {
  readonly lease: Lease;
  readonly holder: Holder;
  readonly sinceMs: number;
}

interface Ledger {
  readonly name: string;
  readonly take: (lease: Lease, amount: number) => boolean;
  readonly giveBack: (owner: string, amount: number) => void;
  readonly held: Map<Holder, Map<string, number>>;
  pending: Pending[];
  isSettling: boolean;
}

interface Recall {
  readonly missing: Set<Holder>;
  readonly end: () => void;
}

/**
 * Leases slices of budgets to processes. If a budget has too little left, the processes first return their unused slices. Then processes
 * free used amounts of the same owner, if they can. Only after that is a request rejected. No process waits for amounts that another
 * process uses, so processes cannot block each other.
 */
export function createLeases({
  recallMs = RECALL_MS,
  nowMs = () => performance.now(),
}: {
  readonly recallMs?: number;
  readonly nowMs?: () => number;
} = {}): Leases {
  const ledgers = new Map<string, Ledger>();
  const recalls = new Map<number, Recall>();
  const ended = new WeakSet<Holder>();
  let recalled = 0;

  /** Sends the granted amount to the process. Returns false if it would still hold less than it needs. */
  function grant(ledger: Ledger, { lease, holder }: Pending): boolean {
    if (ended.has(holder)) return true;
    const { budget, owner, want, need } = lease;
    const slices = ledger.held.get(holder) ?? new Map<string, number>();
    const held = slices.get(owner) ?? 0;
    const amount = [want - held, need - held].find((each) => each <= 0 || ledger.take(lease, each));
    if (amount === undefined) return false;
    if (amount > 0) {
      slices.set(owner, held + amount);
      ledger.held.set(holder, slices);
    }
    holder.send({ type: "leased", budget, owner, amount: Math.max(0, amount), isEnough: true });
    return true;
  }

  function reject({ lease: { budget, owner }, holder }: Pending): void {
    holder.send({ type: "leased", budget, owner, amount: 0, isEnough: false });
  }

  function takeBack(ledger: Ledger, holder: Holder, returned: Slices): void {
    const slices = ledger.held.get(holder);
    for (const [owner, amount] of returned) {
      const held = slices?.get(owner) ?? 0;
      const taken = Math.min(held, amount);
      ledger.giveBack(owner, taken);
      if (held > taken) slices?.set(owner, held - taken);
      else slices?.delete(owner);
    }
    if (slices?.size === 0) ledger.held.delete(holder);
  }

  /** Resolves when all of these processes have returned their unused slices, or after a timeout. */
  async function recall({ name }: Ledger, holders: readonly Holder[], shortOf?: string): Promise<void> {
    if (holders.length === 0) return;
    const id = ++recalled;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, recallMs);
    recalls.set(id, { missing: new Set(holders), end: resolve });
    for (const holder of holders) holder.send({ type: "recall", budget: name, recall: id, shortOf });
    await promise;
    clearTimeout(timer);
    recalls.delete(id);
  }

  function answerRecall(holder: Holder, { missing, end }: Recall): void {
    missing.delete(holder);
    if (missing.size === 0) end();
  }

  /** Grants or rejects a request after unused slices were returned. Returns false if it was rejected. */
  async function settle(ledger: Ledger, pending: Pending): Promise<boolean> {
    if (grant(ledger, pending)) return true;
    const { owner, canFree } = pending.lease;
    const amountOf = (holder: Holder): number => ledger.held.get(holder)?.get(owner) ?? 0;
    const holders = canFree ? [...ledger.held.keys()].filter((holder) => amountOf(holder) > 0) : [];
    for (const holder of holders.sort((a, b) => amountOf(b) - amountOf(a))) {
      if (nowMs() - pending.sinceMs > MAX_AGE_MS) break;
      await recall(ledger, [holder], owner);
      if (grant(ledger, pending)) return true;
    }
    reject(pending);
    return false;
  }

  async function settleAll(ledger: Ledger): Promise<void> {
    ledger.isSettling = true;
    while (ledger.pending.length > 0) {
      const round = ledger.pending;
      ledger.pending = [];
      await recall(ledger, [...ledger.held.keys()]);
      const byOwner = Map.groupBy(round, ({ lease }) => lease.owner);
      const settled = await Promise.all(
        [...byOwner.values()].map(async (requests) => {
          let areGranted = true;
          for (const request of requests) areGranted = (await settle(ledger, request)) && areGranted;
          return areGranted;
        }),
      );
      if (settled.includes(false)) await delay(PAUSE_MS);
    }
    ledger.isSettling = false;
  }

  return {
    receive(request, from) {
      if (ended.has(from)) return;
      const ledger = findOrAddLedger(ledgers, request);
      if (ledger === undefined) return;
      if (request.type === "returned") {
        takeBack(ledger, from, request.slices);
        const running = request.recall === undefined ? undefined : recalls.get(request.recall);
        if (running !== undefined) answerRecall(from, running);
        return;
      }
      const pending = { lease: request, holder: from, sinceMs: nowMs() };
      if (grant(ledger, pending)) return;
      if (!request.isWaiting) {
        reject(pending);
        return;
      }
      ledger.pending.push(pending);
      if (!ledger.isSettling) void settleAll(ledger);
    },
    end(holder) {
      ended.add(holder);
      for (const ledger of ledgers.values()) takeBack(ledger, holder, [...(ledger.held.get(holder) ?? [])]);
      for (const running of recalls.values()) answerRecall(holder, running);
    },
  };
}

/** Returns `undefined` if a process returns slices of a budget that was never leased. */
function findOrAddLedger(ledgers: Map<string, Ledger>, request: LeaseRequest): Ledger | undefined {
  const known = ledgers.get(request.budget);
  if (known !== undefined || request.type !== "lease") return known;
  const { budget: name, total } = request;
  let limit = 0;
  const budget = new FairBudget<string>(total, () => limit);
  const added: Ledger = {
    name,
    take(lease, amount) {
      ({ limit } = lease);
      return budget.take(lease.owner, amount);
    },
    giveBack: (owner, amount) => budget.giveBack(owner, amount),
    held: new Map(),
    pending: [],
    isSettling: false,
  };
  ledgers.set(name, added);
  return added;
}
