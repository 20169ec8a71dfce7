import type { OpenProblem, Sighting } from "../../data/problems/problems.ts";
import type { ProblemKind } from "../../event/problem.ts";

export interface TransitionTiming {
  /** Time for which every check must find a problem before it opens, in milliseconds. */
  readonly openAfterMs: number;
  /** Time for which no check may find a problem before it is resolved, in milliseconds. */
  readonly resolveAfterMs: number;
}

/** Result of one check. `kinds` are the problem kinds that were checked successfully. */
export interface ProblemScan {
  readonly kinds: ReadonlySet<ProblemKind>;
  readonly sightings: readonly Sighting[];
  readonly open: readonly OpenProblem[];
  readonly nowMs: number;
}

export interface Transitions {
  readonly opened: readonly (Sighting & { readonly seenSinceMs: number })[];
  readonly seen: readonly (Sighting & { readonly id: string })[];
  readonly resolved: readonly OpenProblem[];
}

/**
 * Creates a function that decides after each check which problems to open and resolve. The two delays and separate thresholds for opening
 * and resolving keep a problem from flapping. Times are kept in memory, so a new lease holder starts measuring again.
 */
export function createTransitions({ openAfterMs, resolveAfterMs }: TransitionTiming) {
  const seenSince = new Map<string, number>();
  const absentSince = new Map<string, number>();

  return ({ kinds, sightings, open, nowMs }: ProblemScan): Transitions => {
    const ids = new Map(open.map((problem) => [keyOf(problem), problem.id]));
    const found = new Set<string>();
    const opened: (Sighting & { readonly seenSinceMs: number })[] = [];
    const seen: (Sighting & { readonly id: string })[] = [];
    for (const sighting of sightings) {
      const key = keyOf(sighting);
      const id = ids.get(key);
      if (id === undefined && sighting.level === "near") continue;
      found.add(key);
      if (id !== undefined) {
        seen.push({ ...sighting, id });
        absentSince.delete(key);
        continue;
      }
      const sinceMs = seenSince.get(key) ?? nowMs;
      seenSince.set(key, sinceMs);
      if (nowMs - sinceMs >= openAfterMs) opened.push({ ...sighting, seenSinceMs: sinceMs });
    }
    const resolved = open.filter((problem) => {
      const key = keyOf(problem);
      if (found.has(key) || !kinds.has(problem.kind)) return false;
      const sinceMs = absentSince.get(key) ?? nowMs;
      absentSince.set(key, sinceMs);
      return nowMs - sinceMs >= resolveAfterMs;
    });
    for (const key of seenSince.keys())
      if (ids.has(key) || (kinds.has(kindOf(key)) && !found.has(key))) seenSince.delete(key);
    for (const key of absentSince.keys()) if (!ids.has(key)) absentSince.delete(key);
    return { opened, seen, resolved };
  };
}

const keyOf = ({ kind, organizationId, subject }: Omit<OpenProblem, "id">): string =>
  `${kind} ${organizationId} ${subject}`;

const kindOf = (key: string): ProblemKind => key.slice(0, key.indexOf(" ")) as ProblemKind;
