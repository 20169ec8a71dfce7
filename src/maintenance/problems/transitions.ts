import type { OpenProblem, Sighting } from "../../data/problems/problems.ts";
import type { ProblemKind } from "../../event/problem.ts";

export interface TransitionTiming {
  /** Time in ms for which every check must find a problem before the problem opens. */
  readonly openAfterMs: number;
  /** Time in ms for which no check may find a problem before the problem is resolved. */
  readonly resolveAfterMs: number;
}

/** Result of a check. `kinds` are the problem kinds that were checked successfully. */
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
 * Creates a function that decides which problems to open and resolve. The delays keep a problem from alternating between open and resolved.
 * Times are kept in memory, so another gateway that takes over starts measuring again.
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
