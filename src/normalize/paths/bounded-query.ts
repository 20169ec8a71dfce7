/**
 * Runs RFC 9535 queries with json-p3 under a cost budget. Without the budget, a path or a sender's data could block the event loop.
 */
import {
  FunctionExpressionType,
  JSONPathEnvironment,
  JSONPathNode,
  type JSONPathQuery,
  jsonpath,
} from "json-p3";
import type { LinearRegExp } from "../../lib/regexp/linear-regexp.ts";
import {
  compilePattern,
  estimateMaxInstructions,
  type PatternFunction,
  tryCompilePattern,
} from "./i-regexp.ts";
import { type PathBudget, PathBudgetError, PathSyntaxError } from "./path.ts";

export const MAX_DESCENTS = 2;
/**
 * Maximum recursion depth, to prevent stack overflows. Items that are nested more deeply are rejected before paths are evaluated.
 */
const MAX_RECURSION = 2048;
/** Number of path levels that cost as much as one node visit, because json-p3 copies the path for each child. */
export const LEVELS_PER_NODE = 32;
/** Number of compared characters that cost as much as one node visit. */
const CHARACTERS_PER_NODE = 64;
/** Number of automaton steps in pattern matching that cost as much as one node visit. */
const PATTERN_STEPS_PER_NODE = 256;
/**
 * Cost of compiling a pattern, in node visits per character. Parsing a character takes up to 40 µs (`\p{L}`), and adding an
 * instruction up to 4 µs.
 */
const NODES_PER_PATTERN_CHARACTER = 128;
const NODES_PER_PATTERN_INSTRUCTION = 16;

type Value = JSONPathNode["value"];
type Expression = jsonpath.expressions.FilterExpression;

/**
 * Compiles and runs the paths of one set of event definitions, and charges every visited node to the current budget. Only one
 * budget is active at a time, because queries are synchronous.
 */
export class BoundedEnvironment extends JSONPathEnvironment {
  #budget: PathBudget = { left: 0 };
  /** Compiled patterns that are literals in the paths. */
  readonly #patterns = new Map<string, LinearRegExp>();
  /**
   * Compiled patterns that the current query read from the data. The budget bounds their number, because compiling costs budget.
   */
  readonly #dataPatterns = new Map<string, LinearRegExp | undefined>();

  constructor() {
    super({ maxRecursionDepth: MAX_RECURSION });
    const { ValueType, LogicalType } = FunctionExpressionType;
    for (const name of ["match", "search"] as const) {
      this.functionRegister.set(name, {
        argTypes: [ValueType, ValueType],
        returnType: LogicalType,
        call: (text: unknown, pattern: unknown) => this.#test(name, text, pattern),
      });
    }
    this.functionRegister.set("length", {
      argTypes: [ValueType],
      returnType: ValueType,
      call: (value: unknown) => this.#computeLength(value),
    });
  }

  /**
   * Runs a query on a value.
   *
   * @throws PathBudgetError when the budget is exhausted
   */
  run(query: JSONPathQuery, root: unknown, budget: PathBudget): readonly JSONPathNode[] {
    this.#budget = budget;
    try {
      return query.query(root as Value).nodes;
    } finally {
      this.#dataPatterns.clear();
    }
  }

  charge(nodes: number): void {
    this.#budget.left -= nodes;
    if (this.#budget.left < 0)
      throw new PathBudgetError("the path visits more nodes than allowed for one item");
  }

  chargeComparison(value: unknown): void {
    if (typeof value === "string") this.charge(value.length / CHARACTERS_PER_NODE);
    else if (typeof value === "object" && value !== null) {
      for (const child of Object.values(value)) {
        this.charge(1);
        this.chargeComparison(child);
      }
    }
  }

  override entries(object: Parameters<JSONPathEnvironment["entries"]>[0]): [string, Value][] {
    const entries = Object.entries(object);
    this.charge(entries.length);
    return entries;
  }

  /**
   * Compiles a literal pattern of a query.
   *
   * @throws PatternError if the pattern cannot be matched in linear time
   */
  addPattern(name: PatternFunction, pattern: string): void {
    this.#patterns.set(`${name} ${pattern}`, compilePattern(name, pattern));
  }

  /**
   * Returns whether a text matches a pattern. An invalid pattern, or a value that is not a string, never matches (RFC 9535 sections
   * 2.4.6, 2.4.7).
   */
  #test(name: PatternFunction, text: unknown, pattern: unknown): boolean {
    if (typeof text !== "string" || typeof pattern !== "string") return false;
    const compiled = this.#patterns.get(`${name} ${pattern}`) ?? this.#compileDataPattern(name, pattern);
    if (compiled === undefined) return false;
    this.charge((text.length * compiled.size) / PATTERN_STEPS_PER_NODE);
    return compiled.test(text);
  }

  /**
   * Compiles a pattern that comes from the data. The cache is cleared for each query, so that an item's cost does not depend on
   * earlier items.
   */
  #compileDataPattern(name: PatternFunction, pattern: string): LinearRegExp | undefined {
    const key = `${name} ${pattern}`;
    if (this.#dataPatterns.has(key)) return this.#dataPatterns.get(key);
    this.charge(
      pattern.length * NODES_PER_PATTERN_CHARACTER +
        estimateMaxInstructions(pattern) * NODES_PER_PATTERN_INSTRUCTION,
    );
    const compiled = tryCompilePattern(name, pattern);
    this.#dataPatterns.set(key, compiled);
    return compiled;
  }

  /**
   * Implements the query function `length()`. The length of a string is its number of Unicode scalar values (RFC 9535 section
   * 2.4.4).
   */
  #computeLength(value: unknown): number | typeof jsonpath.Nothing {
    if (Array.isArray(value)) return value.length;
    if (typeof value === "object" && value !== null) {
      const { length } = Object.keys(value);
      this.charge(length);
      return length;
    }
    if (typeof value !== "string") return jsonpath.Nothing;
    this.charge(value.length / CHARACTERS_PER_NODE);
    let length = 0;
    for (const _ of value) length++;
    return length;
  }
}

/**
 * Makes a compiled query, and the queries in its filters, charge the environment's budget.
 *
 * @throws PathSyntaxError for too many descents, and for a literal pattern that cannot be compiled
 */
export function boundQuery(environment: BoundedEnvironment, query: JSONPathQuery): void {
  let descents = 0;

  function boundSegments({ segments }: JSONPathQuery, isNested: boolean): void {
    for (const [index, segment] of segments.entries()) {
      const descends = segment.token.kind === jsonpath.TokenKind.DDOT;
      if (descends && ++descents > MAX_DESCENTS) {
        throw new PathSyntaxError(`more than ${MAX_DESCENTS} descents (..)`, segment.token.index);
      }
      for (const selector of segment.selectors) {
        if (selector instanceof jsonpath.selectors.FilterSelector) boundExpression(selector.expression);
      }
      const isCompared = isNested && index === segments.length - 1;
      segments[index] = new BoundedSegment(environment, segment, { descends, isCompared });
    }
  }

  function boundExpression(expression: Expression): void {
    const { FilterQuery, FunctionExtension, InfixExpression, LogicalExpression, PrefixExpression } =
      jsonpath.expressions;
    if (expression instanceof FilterQuery) boundSegments(expression.path, true);
    else if (expression instanceof LogicalExpression) boundExpression(expression.expression);
    else if (expression instanceof PrefixExpression) boundExpression(expression.right);
    else if (expression instanceof InfixExpression) {
      boundExpression(expression.left);
      boundExpression(expression.right);
    } else if (expression instanceof FunctionExtension) {
      addLiteralPattern(expression);
      for (const argument of expression.args) boundExpression(argument);
    }
  }

  function addLiteralPattern({ name, args }: jsonpath.expressions.FunctionExtension): void {
    if (name !== "match" && name !== "search") return;
    const pattern = args[1];
    if (!(pattern instanceof jsonpath.expressions.StringLiteral)) return;
    try {
      environment.addPattern(name, pattern.value);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new PathSyntaxError(reason, pattern.token.index, { cause: error });
    }
  }

  boundSegments(query, false);
}

/**
 * Replaces a segment of json-p3, and selects the same nodes. Charges the budget before each visit, and never spreads an array into
 * arguments.
 */
class BoundedSegment extends jsonpath.JSONPathSegment {
  readonly #bounds: BoundedEnvironment;
  readonly #original: jsonpath.JSONPathSegment;
  readonly #descends: boolean;
  readonly #isCompared: boolean;

  constructor(
    environment: BoundedEnvironment,
    original: jsonpath.JSONPathSegment,
    options: { readonly descends: boolean; readonly isCompared: boolean },
  ) {
    super(environment, original.token, original.selectors);
    this.#bounds = environment;
    this.#original = original;
    this.#descends = options.descends;
    this.#isCompared = options.isCompared;
  }

  override resolve(nodes: JSONPathNode[]): JSONPathNode[] {
    const found: JSONPathNode[] = [];
    for (const node of nodes) {
      if (this.#descends) this.#descend(node, found, 0);
      else this.#select(node, found);
    }
    return found;
  }

  override *lazyResolve(nodes: Iterable<JSONPathNode>): Generator<JSONPathNode> {
    yield* this.resolve([...nodes]);
  }

  override toString(): string {
    return this.#original.toString();
  }

  #descend(node: JSONPathNode, found: JSONPathNode[], depth: number): void {
    if (depth > MAX_RECURSION)
      throw new PathBudgetError("the value is nested too deeply to evaluate the path");
    this.#bounds.charge(node.location.length / LEVELS_PER_NODE);
    this.#select(node, found);
    const { value } = node;
    if (Array.isArray(value)) {
      this.#bounds.charge(value.length);
      for (const [index, child] of value.entries())
        this.#descend(createChild(node, index, child), found, depth + 1);
    } else if (typeof value === "object" && value !== null) {
      for (const [name, child] of this.#bounds.entries(value as Record<string, Value>)) {
        this.#descend(createChild(node, name, child), found, depth + 1);
      }
    }
  }

  #select(node: JSONPathNode, found: JSONPathNode[]): void {
    for (const selector of this.selectors) {
      this.#bounds.charge(isDirect(selector) || !Array.isArray(node.value) ? 1 : node.value.length + 1);
      for (const selected of selector.resolve(node)) {
        if (this.#isCompared) this.#bounds.chargeComparison(selected.value);
        found.push(selected);
      }
    }
  }
}

const createChild = (node: JSONPathNode, step: string | number, value: Value): JSONPathNode =>
  new JSONPathNode(value, node.location.concat(step), node.root);

function isDirect(selector: jsonpath.JSONPathSelector): boolean {
  const { IndexSelector, NameSelector } = jsonpath.selectors;
  return selector instanceof NameSelector || selector instanceof IndexSelector;
}
