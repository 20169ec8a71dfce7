import { parseArgs } from "node:util";

type Flags = Readonly<Record<string, number | string>>;

/** Reads the flags of a benchmark, such as `--rounds 1`. Throws if a flag is not in `defaults`. */
export function readFlags<T extends Flags>(
  defaults: T,
): { [Name in keyof T]: T[Name] extends number ? number : string } {
  const options = Object.fromEntries(
    Object.keys(defaults).map((name) => [name, { type: "string" }] as const),
  );
  const { values } = parseArgs({ options });
  const read = Object.entries(defaults).map(([name, standard]) => {
    const given = values[name];
    if (given === undefined) return [name, standard];
    const value = typeof standard === "number" ? Number(given) : given;
    if (Number.isNaN(value)) throw new Error(`--${name} is ${given}, but must be a number`);
    return [name, value];
  });
  return Object.fromEntries(read);
}
