import { FairBudget } from "./fairness.ts";

/** A limit on the amount that is in use at once, such as bytes of memory, shared by several owners. */
export interface Budget {
  /**
   * Takes an amount for an owner, or nothing if the limit is reached. Returns a promise only if the supervisor has to be asked. Takes of one
   * owner are granted in order. The promise resolves within a second.
   */
  readonly take: (owner: string, amount: number) => boolean | Promise<boolean>;
  readonly giveBack: (owner: string, amount: number) => void;
}

export interface BudgetOptions {
  readonly total: number;
  /** Returns an owner's limit, or `undefined` for half of the total. */
  readonly limitOf?: (owner: string) => number | undefined;
  /** Maximum unused amount that a process leases. 0 if each unit must be asked for. Default: 1 MiB. */
  readonly slice?: number;
  /** Called when other processes need amounts that this process uses for an owner. The callee may give some back at once. */
  readonly onShortage?: (owner: string) => void;
}

/** Opens budgets. Budgets with the same name are shared by all processes of a machine. */
export interface Budgets {
  readonly open: (name: string, options: BudgetOptions) => Budget;
}

/** Budgets of a gateway with one process. */
export const ownBudgets: Budgets = {
  open: (_, { total, limitOf }) => new FairBudget<string>(total, limitOf),
};
