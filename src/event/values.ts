/** Named values that may repeat, as in headers, queries and forms: a repeated name is an array in order of arrival. */
export type Values = Readonly<Record<string, string | readonly string[]>>;

/**
 * Inherits nothing: a sender may call a parameter `__proto__` or `constructor`, and it is a value like any other. V8 keeps objects
 * of a class by their shape, where one that is made without a prototype is a hash table, and reading it a multiple of the cost.
 */
class Collected {
  [name: string]: string | string[];
}
Reflect.deleteProperty(Collected.prototype, "constructor");
Object.setPrototypeOf(Collected.prototype, null);

/** Collects pairs. */
export class ValueCollector {
  readonly collected: Record<string, string | string[]> = new Collected();

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

/** The values without the named ones; the same object where it has none of them. */
export function omitValues(values: Values, names: ReadonlySet<string>): Values {
  for (const name in values) if (names.has(name)) return withoutNamed(values, names);
  return values;
}

function withoutNamed(values: Values, names: ReadonlySet<string>): Values {
  const kept: Record<string, Values[string] | undefined> = new Collected();
  for (const name in values) if (!names.has(name)) kept[name] = values[name];
  return kept as Values;
}

const NONE: Values = Object.freeze(Object.create(null));
