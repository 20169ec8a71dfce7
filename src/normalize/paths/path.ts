import { buildTargets, type Location, type Targets } from "../body/json-scan.ts";

/** The cost left for the paths of one item; 1 is about one node visited. */
export interface PathBudget {
  left: number;
}

/** A path visited more nodes than its item may cost. */
export class PathBudgetError extends Error {
  override readonly name = "PathBudgetError";
}

/** A value that a path yields; no location where it does not stand in the data (the name of a member, by `~`). */
export interface PathNode {
  readonly value: unknown;
  readonly location?: Location;
}

/** A path of names and indexes alone: it yields one value or none. */
export interface SingularPath {
  readonly kind: "singular";
  /** Equal for paths that differ in spelling only (`$.a` and `$['a']`). */
  readonly key: string;
  readonly get: (root: unknown) => unknown;
  /** Where that value stands, for a root in which there is one. */
  readonly targetsIn: (root: unknown) => Targets;
}

/** Any other path: it yields any number of values. */
export interface QueryPath {
  readonly kind: "query";
  readonly key: string;
  /** @throws PathBudgetError */
  readonly select: (root: unknown, budget: PathBudget) => readonly PathNode[];
}

export type Path = SingularPath | QueryPath;

/** A path that does not compile; `at` is the 0-based offset of the fault where it is known. The message is for its author. */
export class PathSyntaxError extends Error {
  override readonly name = "PathSyntaxError";
  readonly at: number | undefined;

  constructor(message: string, at?: number, options?: ErrorOptions) {
    super(message, options);
    this.at = at;
  }
}

export function createSingularPath(location: Location): SingularPath {
  const targets = buildTargets([location]);
  const isFixed = location.every((step) => typeof step === "string" || step >= 0);
  return {
    kind: "singular",
    key: JSON.stringify(location),
    get: createAccessor(location),
    targetsIn: isFixed ? () => targets : (root) => buildTargets([resolve(location, root)]),
  };
}

/** Reads own members only: JSON has no inherited ones. Undefined, which JSON has not either, stands for absent. */
function createAccessor(location: Location): (root: unknown) => unknown {
  const steps = location.map(createStep);
  const [first, second] = steps;
  if (first === undefined) return (root) => root;
  if (second === undefined) return first;
  if (steps.length === 2) return (root) => second(first(root));
  return (root) => {
    let value = root;
    for (const step of steps) value = step(value);
    return value;
  };
}

function createStep(step: string | number): (value: unknown) => unknown {
  if (typeof step === "number") return (value) => (Array.isArray(value) ? value.at(step) : undefined);
  // `in`: names such as `constructor` need a look at the own members, all others cannot be inherited.
  const isInherited = step in Object.prototype;
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    if (isInherited && !Object.hasOwn(value, step)) return undefined;
    return (value as Readonly<Record<string, unknown>>)[step];
  };
}

/** The location with its negative indexes counted from the ends of the arrays that they stand for. */
function resolve(location: Location, root: unknown): Location {
  let value = root;
  return location.map((step) => {
    const resolved =
      typeof step === "number" && step < 0 && Array.isArray(value) ? value.length + step : step;
    value = createStep(resolved)(value);
    return resolved;
  });
}
