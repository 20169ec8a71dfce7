import { buildTargets, type Location, type Targets } from "../body/json-scan.ts";

/** Remaining budget for evaluating paths. Visiting one node costs about 1. */
export interface PathBudget {
  left: number;
}

export class PathBudgetError extends Error {
  override readonly name = "PathBudgetError";
}

/**
 * A value that a path has selected. `location` is `undefined` if the value is not part of the data, such as a member name selected
 * by `~`.
 */
export interface PathNode {
  readonly value: unknown;
  readonly location?: Location;
}

/** A path that consists only of names and indexes, and therefore yields at most one value. */
export interface SingularPath {
  readonly kind: "singular";
  /** Normalized form of the path. Equivalent spellings, such as `$.a` and `$['a']`, have the same key. */
  readonly key: string;
  readonly location: Location;
  readonly get: (root: unknown) => unknown;
  /** Returns a search tree for the location of the selected value within `root`. */
  readonly targetsIn: (root: unknown) => Targets;
}

export interface QueryPath {
  readonly kind: "query";
  readonly key: string;
  /** @throws PathBudgetError */
  readonly select: (root: unknown, budget: PathBudget) => readonly PathNode[];
}

export type Path = SingularPath | QueryPath;

/**
 * Thrown when a path cannot be compiled. `at` is the zero-based offset of the error, and the message is for the author of the path.
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
    location,
    get: createAccessor(location),
    targetsIn: isFixed ? () => targets : (root) => buildTargets([resolve(location, root)]),
  };
}

/**
 * Creates a function that reads the value at a location, or returns `undefined` if it is missing. Ignores inherited members, which
 * are not part of the JSON data.
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
  // Only names in `Object.prototype`, such as `constructor`, can be inherited. Other names need no own-property check.
  const isInherited = step in Object.prototype;
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    if (isInherited && !Object.hasOwn(value, step)) return undefined;
    return (value as Readonly<Record<string, unknown>>)[step];
  };
}

/** Replaces negative array indexes in a location by the equivalent non-negative indexes. */
function resolve(location: Location, root: unknown): Location {
  let value = root;
  return location.map((step) => {
    const resolved =
      typeof step === "number" && step < 0 && Array.isArray(value) ? value.length + step : step;
    value = createStep(resolved)(value);
    return resolved;
  });
}
