/** Named values that may repeat, as in headers, queries and forms: a repeated name is an array in order of arrival. */
export type Values = Readonly<Record<string, string | readonly string[]>>;

/**
 * Collects pairs. The object has no prototype: a sender may call a parameter `__proto__` or `constructor`, and it is a
 * value like any other.
 */
export class ValueCollector {
  readonly collected: Record<string, string | string[]> = Object.create(null);

  add(name: string, value: string): void {
    const before = this.collected[name];
    if (before === undefined) this.collected[name] = value;
    else if (typeof before === "string") this.collected[name] = [before, value];
    else before.push(value);
  }
}

export function collectValues(pairs: Iterable<readonly [name: string, value: string]>): Values {
  const values = new ValueCollector();
  for (const [name, value] of pairs) values.add(name, value);
  return values.collected;
}

/** The query of a request target (`/path?a=1`), decoded as forms are. */
export function queryValues(target: string): Values {
  const start = target.indexOf("?");
  return start < 0 ? NONE : collectValues(new URLSearchParams(target.slice(start + 1)));
}

/** The values without the named ones. */
export function omitValues(values: Values, names: readonly string[]): Values {
  if (!names.some((name) => name in values)) return values;
  const kept: Record<string, Values[string]> = Object.create(null);
  for (const [name, value] of Object.entries(values)) if (!names.includes(name)) kept[name] = value;
  return kept;
}

const NONE: Values = Object.freeze(Object.create(null));
