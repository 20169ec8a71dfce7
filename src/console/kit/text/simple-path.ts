/** A JSONPath that is a plain list of names and indexes, such as `$headers['x-type']` or `$.events[*].type`. */
export interface SimplePath {
  /** Name after the `$`: `headers`, `query`, or empty for the item. */
  readonly root: string;
  /** Names and indexes. `*` stands for all elements. */
  readonly steps: readonly string[];
}

const WHOLE = /^\$([A-Za-z]\w*)?((?:\.[\w-]+|\['[^']+'\]|\["[^"]+"\]|\[\d+\]|\[\*\])*)$/;
const STEP = /\.([\w-]+)|\['([^']+)'\]|\["([^"]+)"\]|\[(\d+|\*)\]/g;

/** Returns `undefined` if the path has other parts, such as a filter. */
export function parseSimplePath(path: string): SimplePath | undefined {
  const [, root = "", rest] = WHOLE.exec(path) ?? [];
  if (rest === undefined) return undefined;
  const steps = [...rest.matchAll(STEP)].map(
    ([, ...parts]) => parts.find((part) => part !== undefined) ?? "",
  );
  return { root, steps };
}

/** Returns the first value at the steps, or `undefined` if there is none. */
export const readFirst = (value: unknown, steps: readonly string[]): unknown =>
  steps.reduce<unknown>((at, step) => {
    if (typeof at !== "object" || at === null) return undefined;
    return step === "*" ? Object.values(at)[0] : Reflect.get(at, step);
  }, value);

/** Appends a name or an index to a JSONPath (RFC 9535, section 2.7). */
export function appendStep(path: string, step: string | number): string {
  if (typeof step === "number") return `${path}[${step}]`;
  if (/^[A-Za-z_]\w*$/.test(step)) return `${path}.${step}`;
  return `${path}['${step.replace(/[\\']/g, "\\$&")}']`;
}
