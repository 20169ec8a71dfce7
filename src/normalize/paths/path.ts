import { buildTargets, type Location, type Targets } from "../body/json-scan.ts";

/** The remaining cost that paths may cause on one item. Visiting a node costs about 1. */
export interface PathBudget {
  left: number;
}

/** Thrown when evaluating a path would exceed the budget. */
export class PathBudgetError extends Error {
  override readonly name = "PathBudgetError";
}

/**
 * A value that a path yields, with its location. The location is `undefined` if the value is not in the data, such as a member
 * name that `~` selects.
 */
export interface PathNode {
  readonly value: unknown;
  readonly location?: Location;
}

/** A path that consists only of names and indexes. It yields at most one value. */
export interface SingularPath {
  readonly kind: "singular";
  /** Identifies the path. Paths that differ only in spelling, such as `$.a` and `$['a']`, have the same key. */
  readonly key: string;
  readonly get: (root: unknown) => unknown;
  /** Returns the location of the selected value, for a root that contains the value. */
  readonly targetsIn: (root: unknown) => Targets;
}

/** A path that can yield any number of values. */
export interface QueryPath {
  readonly kind: "query";
  readonly key: string;
  /** Returns the values that the path selects. @throws PathBudgetError */
  readonly select: (root: unknown, budget: PathBudget) => readonly PathNode[];
}

export type Path = SingularPath | QueryPath;

/**
 * Thrown when a path does not compile. `at` is the offset of the error from 0, if known. The message is for the author of the
 * path.
 */
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

/**
 * Creates a function that reads the value at a location. It ignores inherited members, because they are not part of the JSON
 * data, and returns `undefined` for missing ones.
 */
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
  // Check whether the name exists in Object.prototype, like `constructor`. Only such a name can be inherited and needs an
  // own-property check.
  const isInherited = step in Object.prototype;
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    if (isInherited && !Object.hasOwn(value, step)) return undefined;
    return (value as Readonly<Record<string, unknown>>)[step];
  };
}

/** Replaces the negative indexes in a location by indexes from the start of the arrays. */
function resolve(location: Location, root: unknown): Location {
  let value = root;
  return location.map((step) => {
    const resolved =
      typeof step === "number" && step < 0 && Array.isArray(value) ? value.length + step : step;
    value = createStep(resolved)(value);
    return resolved;
  });
}
