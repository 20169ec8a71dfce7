/** Paths in the syntax of the library jsonpath-plus. Wildcards and descents are supported, scripts are not. */
import { JSONPath, JSONPathClass } from "jsonpath-plus";
import type { Location } from "../body/json-scan.ts";
import { LEVELS_PER_NODE, MAX_DESCENTS } from "./bounded-query.ts";
import { type PathBudget, PathBudgetError, type PathNode, PathSyntaxError } from "./path.ts";

type Step = string | number;
type TraceArguments = Parameters<JSONPathClass["_trace"]>;
type TraceResult = ReturnType<JSONPathClass["_trace"]>;

/** Matches the `@type()` selectors of jsonpath-plus that need neither a script nor a callback. */
const TYPE_SELECTOR = /^@(?:scalar|boolean|string|integer|number|nonFinite|object|array|null|undefined)\(\)$/;

/**
 * Parses a path into steps with jsonpath-plus.
 *
 * @throws PathSyntaxError for filters, script expressions, unknown selectors and too many descents
 */
export function parsePlusPath(path: string): readonly string[] {
  checkScripts(path);
  checkBrackets(path);
  const [root, ...steps] = JSONPath.toPathArray(path);
  // Clear the cache of jsonpath-plus, which would keep parsed paths forever. The caller has its own cache.
  JSONPath.clearCache();
  if (root !== "$") throw new PathSyntaxError("a path must begin with $", 0);
  for (const step of steps) {
    if (step === "") throw new PathSyntaxError("the path has an empty step");
    if (step.startsWith("@") && !TYPE_SELECTOR.test(step))
      throw new PathSyntaxError(`unknown selector ${step}`);
  }
  if (steps.filter((step) => step === "..").length > MAX_DESCENTS) {
    throw new PathSyntaxError(`the path has more than ${MAX_DESCENTS} descents (..)`);
  }
  return steps;
}

/** A compiled path in the syntax of jsonpath-plus. Every step of the evaluation is charged to the budget. */
export class PlusQuery extends JSONPathClass {
  readonly #steps: readonly string[];
  #budget: PathBudget = { left: 0 };

  constructor(steps: readonly string[]) {
    super({ autostart: false, eval: false, path: "$", json: null });
    this.#steps = steps;
    // Set this internal option here, because `evaluate()` is not called: it would parse the path again on every call.
    this.currEval = false;
  }

  select(root: unknown, budget: PathBudget): readonly PathNode[] {
    if (typeof root !== "object" || root === null)
      return this.#steps.length === 0 ? [{ value: root, location: [] }] : [];
    this.#budget = budget;
    this._hasParentSelector = false;
    const result = this._trace([...this.#steps], root, ["$"], null, null, undefined, undefined);
    const found = Array.isArray(result) ? result : [result];
    return found.flatMap((node) =>
      node === undefined || node.isParentSelector === true ? [] : [locate(root, node.path, node.value)],
    );
  }

  override _trace(...args: TraceArguments): TraceResult {
    this.#budget.left -= 1 + args[2].length / LEVELS_PER_NODE;
    if (this.#budget.left < 0)
      throw new PathBudgetError("the path visits more nodes than allowed for one item");
    return super._trace(...args);
  }
}

/**
 * Converts a path from jsonpath-plus, which returns array indexes as strings, to a location. Member names selected by `~` have no
 * location.
 */
function locate(root: unknown, path: string | readonly Step[], value: unknown): PathNode {
  if (typeof path === "string") return { value };
  const location: Step[] = [];
  let at: unknown = root;
  for (const step of path.slice(1)) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, step)) return { value };
    location.push(Array.isArray(at) ? Number(step) : String(step));
    at = (at as Readonly<Record<Step, unknown>>)[step];
  }
  return at === value ? { value, location: location satisfies Location } : { value };
}

/**
 * Rejects filters and scripts by their opening brackets. This check runs first, so that quotes and brackets in a script are not
 * mistaken for names.
 */
function checkScripts(path: string): void {
  const named = path.replace(/\[\s*(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")/gu, (name) =>
    " ".repeat(name.length),
  );
  const at = named.search(/\[\s*[?(]|\.[?(]/u);
  if (at !== -1) throw new PathSyntaxError(`filters and scripts are not allowed: ${path.slice(at)}`, at);
}

/** Rejects unbalanced brackets and quotes, because jsonpath-plus would treat them as part of a name. */
function checkBrackets(path: string): void {
  const rest = path.replace(
    /\[\s*(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^[\]'"]*)(?:\s*,\s*(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"))*\s*\]/gu,
    "",
  );
  const at = rest.search(/[[\]]/u);
  if (at !== -1)
    throw new PathSyntaxError("a bracket is not closed, or does not contain a name, index or slice");
}
