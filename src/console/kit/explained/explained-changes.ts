interface Found {
  readonly path: string;
  readonly values: readonly string[];
}

/** Result of a definition for an item, as in the response of the API. */
interface Definition {
  readonly type: string;
  readonly matches: boolean;
  readonly typePath: Found | null;
  readonly idPath: Found | null;
  readonly payloadPath: Found | null;
  readonly failure: { readonly reason: string; readonly path: string | null; readonly detail: string } | null;
  readonly ignored: { readonly detail: string } | null;
}

interface Explained {
  readonly item: number | null;
  readonly definitions: readonly Definition[];
}

/** A result that differs between two explanations of the same delivery. */
export interface Change {
  readonly item: number | null;
  /** Type of a definition. */
  readonly type: string;
  /** Compared part: `result`, or the name of a path. */
  readonly part: string;
  /** `undefined` if the definition did not exist. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

const PATHS = ["typePath", "idPath", "payloadPath"] as const;

/** Compares explanations of a delivery, item by item and definition by definition. */
export function findChanges(then: readonly Explained[], now: readonly Explained[]): readonly Change[] {
  const items = [...new Set([...then, ...now].map(({ item }) => item))];
  return items.flatMap((item) => {
    const [olds, currents] = [then, now].map(
      (all) => all.find((one) => one.item === item)?.definitions ?? [],
    );
    const types = new Set([...(olds ?? []), ...(currents ?? [])].map(({ type }) => type));
    return [...types].flatMap((type) => {
      const [old, current] = [olds, currents].map((all) => all?.find((one) => one.type === type));
      const parts = [
        { part: "result", before: old && resultOf(old), after: current && resultOf(current) },
        ...PATHS.map((part) => ({
          part,
          before: old && valuesOf(old, part),
          after: current && valuesOf(current, part),
        })),
      ];
      return parts.filter((one) => one.before !== one.after).map((one) => ({ item, type, ...one }));
    });
  });
}

function resultOf({ matches, failure, ignored }: Definition): string {
  if (failure !== null) return [failure.reason, failure.path, failure.detail].filter(Boolean).join(" ");
  if (ignored !== null) return `ignored: ${ignored.detail}`;
  return matches ? "matches" : "no match";
}

function valuesOf(definition: Definition, part: (typeof PATHS)[number]): string {
  const found = definition[part];
  if (found === null) return "not set";
  return `${found.path} → ${found.values.length === 0 ? "no value" : found.values.join(", ")}`;
}
