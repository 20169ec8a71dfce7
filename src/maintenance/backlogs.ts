import type { GroupStatus } from "../bus/retention/retention-risk.ts";
import { OTHER } from "../metrics/channel-counts.ts";

/** Backlog of a subscription, summed over its topics. `other` combines all subscriptions that have no entry of their own. */
export interface Backlog {
  readonly app: string;
  readonly subscription: string;
  readonly lag: number;
  /** Age of the oldest undelivered entry, in seconds. */
  readonly lagSeconds: number;
  /** Age of the oldest entry that is not acknowledged, in seconds. Includes entries that were never delivered. */
  readonly unhandledSeconds: number;
  readonly pending: number;
  /** Number of dead letters of the readers and of the handler. */
  readonly deadLetters: number;
}

type Sum = { -readonly [K in keyof Backlog]: Backlog[K] };

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
