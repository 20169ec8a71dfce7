/** Values of headers, queries or forms by name. A repeated name has an array of values in order of arrival. */
export type Values = Readonly<Record<string, string | readonly string[]>>;

/**
 * An object without inherited properties, so that names such as `__proto__` are ordinary keys.
 *
 * It is a class, because V8 reads its instances several times faster than the result of `Object.create(null)`.
 */
class Collected {
  [name: string]: string | string[];
}
Reflect.deleteProperty(Collected.prototype, "constructor");
Object.setPrototypeOf(Collected.prototype, null);

export class ValueCollector {
  readonly collected: Record<string, string | string[]> = new Collected();

  add(name: string, value: string): void {
    const before = this.collected[name];
    if (before === undefined) this.collected[name] = value;
    else if (typeof before === "string") this.collected[name] = [before, value];
    else before.push(value);
  }
}

/** Returns the values without these names, or the same object if none of the names occur. */
export function omitValues(values: Values, names: ReadonlySet<string>): Values {
  for (const name in values) if (names.has(name)) return withoutNamed(values, names);
  return values;
}

function withoutNamed(values: Values, names: ReadonlySet<string>): Values {
  const kept: Record<string, Values[string] | undefined> = new Collected();
  for (const name in values) if (!names.has(name)) kept[name] = values[name];
  return kept as Values;
}
