import type { GroupStatus } from "../bus/retention/retention-risk.ts";
import { OTHER } from "../metrics/channel-counts.ts";

/** How far behind a subscription is, over all its topics; all that are not named themselves are together `other` of the app `other`. */
export interface Backlog {
  readonly app: string;
  readonly subscription: string;
  /** Entries that its group was not given yet. */
  readonly lag: number;
  /** The age of the oldest of them. */
  readonly lagSeconds: number;
  /** The age of the oldest that was not given, or was and is not acknowledged. */
  readonly unhandledSeconds: number;
  readonly pending: number;
  /** Those of its readers and of its handler. */
  readonly deadLetters: number;
}

type Sum = { -readonly [K in keyof Backlog]: Backlog[K] };

/** Sums what a look at all topics finds. */
export function createBacklogs() {
  const sums = new Map<string, Sum>();
  return {
    add(topic: string, group: GroupStatus): void {
      const sum = sums.get(group.name) ?? nothing(topic.split(".")[5] ?? OTHER, group.name);
      sums.set(group.name, sum);
      addTo(sum, {
        lag: group.lag,
        lagSeconds: group.lagMs / 1000,
        unhandledSeconds: group.unhandledMs / 1000,
        pending: group.pending,
        deadLetters: group.deadLetters,
      });
    },
    /** Those of handlers, by subscription. */
    addLetters(counts: ReadonlyMap<string, number>): void {
      for (const [subscription, count] of counts) {
        const sum = sums.get(subscription);
        if (sum) sum.deadLetters += count;
      }
    },
    all: (): ReadonlyMap<string, Backlog> => sums,
    furthest(most: number): readonly Backlog[] {
      const ranked = [...sums.values()].sort(
        (a, b) => b.unhandledSeconds - a.unhandledSeconds || b.deadLetters - a.deadLetters || b.lag - a.lag,
      );
      const rest = nothing(OTHER, OTHER);
      for (const one of ranked.slice(most)) addTo(rest, one);
      return [...ranked.slice(0, most), rest];
    },
  };
}

const nothing = (app: string, subscription: string): Sum => ({
  app,
  subscription,
  lag: 0,
  lagSeconds: 0,
  unhandledSeconds: 0,
  pending: 0,
  deadLetters: 0,
});

function addTo(sum: Sum, one: Omit<Backlog, "app" | "subscription">): void {
  sum.lag += one.lag;
  sum.lagSeconds = Math.max(sum.lagSeconds, one.lagSeconds);
  sum.unhandledSeconds = Math.max(sum.unhandledSeconds, one.unhandledSeconds);
  sum.pending += one.pending;
  sum.deadLetters += one.deadLetters;
}
