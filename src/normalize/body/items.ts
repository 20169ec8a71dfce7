import type { RulePath } from "../compile.ts";
import type { Fault } from "../fault.ts";
import { type BrokenItem, type Item, MAX_ITEMS, type Split } from "../item.ts";
import {
  type PathBudget,
  PathBudgetError,
  type PathNode,
  type QueryPath,
  type SingularPath,
} from "../paths/path.ts";
import type { ItemOptions } from "../profile.ts";
import { type Body, readJson } from "./bodies.ts";

/**
 * Maximum number of array elements in a body whose `null` elements are skipped. Skipped elements do not count toward `MAX_ITEMS`.
 */
export const MAX_PAGE_ITEMS = 50_000;
/** Maximum nesting depth of a whole body, which bounds the recursion of path evaluation. The limit for a single item is lower. */
const MAX_BODY_DEPTH = 1024;

/** Splits a delivery into items in publishing order. The index of an item is its position in the body. */
export function takeItems(
  body: Body,
  itemsPath: RulePath | undefined,
  { hasGaps, isNewestFirst }: Pick<ItemOptions, "hasGaps" | "isNewestFirst">,
  budget: PathBudget,
): Split {
  const split = splitItems(body, itemsPath, budget, hasGaps ? MAX_PAGE_ITEMS : MAX_ITEMS);
  if (split.kind !== "items") return split;
  const items = hasGaps ? split.items.filter((item) => !isGap(item)) : split.items;
  if (items.length > MAX_ITEMS) return { kind: "tooMany", limit: MAX_ITEMS };
  return { kind: "items", items: isNewestFirst ? items.toReversed() : items };
}

/** Returns whether an item is a `null` element of an array, which is skipped. A body that is `null` as a whole is not skipped. */
const isGap = (item: Item | BrokenItem): boolean => "value" in item && item.value === null && !item.isBody;

/** Splits NDJSON into lines, and any other body by `itemsPath`. Without `itemsPath`, the whole body is one item. */
export function splitItems(
  body: Body,
  itemsPath: RulePath | undefined,
  budget: PathBudget,
  limit: number,
): Split {
  if (body.kind === "ndjson" && body.bytes.length > 0) return splitLines(body.text ?? "", limit);
  if (itemsPath === undefined) {
    return { kind: "items", items: [{ index: 0, value: body.value, json: body.json, isBody: true }] };
  }
  if (exceedsDepth(body.value, MAX_BODY_DEPTH, body.text?.length)) {
    return fault({
      reason: "too_deep",
      detail: `the body is nested more than ${MAX_BODY_DEPTH} levels deep`,
    });
  }
  const { path } = itemsPath;
  return path.kind === "singular"
    ? splitSingular(body, itemsPath.text, path, limit)
    : splitQuery(body, itemsPath.text, path, { budget, limit });
}

function splitSingular(body: Body, pathText: string, path: SingularPath, limit: number): Split {
  const value = path.get(body.value);
  if (value === undefined) return nothingFound(pathText);
  const json = body.json?.find(path.targetsIn(body.value), value);
  if (!Array.isArray(value)) return { kind: "items", items: [{ index: 0, value, json, isBody: false }] };
  if (value.length > limit) return { kind: "tooMany", limit };
  const texts = json?.elements();
  return {
    kind: "items",
    items: value.map((element, index) => ({ index, value: element, json: texts?.[index], isBody: false })),
  };
}

function splitQuery(
  body: Body,
  pathText: string,
  path: QueryPath,
  { budget, limit }: { readonly budget: PathBudget; readonly limit: number },
): Split {
  let nodes: readonly PathNode[];
  try {
    nodes = path.select(body.value, budget);
  } catch (error) {
    if (!(error instanceof PathBudgetError)) throw error;
    return fault({ reason: "path_budget", path: "itemsPath", detail: error.message });
  }
  if (nodes.length === 0) return nothingFound(pathText);
  if (nodes.length > limit) return { kind: "tooMany", limit };
  const texts = body.json?.cut(nodes);
  return {
    kind: "items",
    items: nodes.map(({ value }, index) => ({ index, value, json: texts?.[index], isBody: false })),
  };
}

/** Starts each value of a JSON text sequence (RFC 7464). It never occurs inside of a JSON value. */
const RECORD_SEPARATOR = "\x1E";

function splitLines(text: string, limit: number): Split {
  const items: (Item | BrokenItem)[] = [];
  const separator = text.startsWith(RECORD_SEPARATOR) ? RECORD_SEPARATOR : "\n";
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf(separator, start);
    const end = found === -1 ? text.length : found;
    let last = end;
    while (last > start && "\r\n".includes(text.charAt(last - 1))) last--;
    const line = text.slice(start, last);
    start = end + 1;
    if (line.trim() === "") continue;
    if (items.length === limit) return { kind: "tooMany", limit };
    items.push(readLine(line, items.length));
  }
  return { kind: "items", items };
}

function readLine(line: string, index: number): Item | BrokenItem {
  const json = readJson(line);
  if (!json.ok) return { index, fault: json.error, text: line };
  return { index, value: json.value.value, json: json.value, isBody: false };
}

const fault = (value: Fault): Split => ({ kind: "fault", fault: value });

const nothingFound = (pathText: string): Split =>
  fault({
    reason: "invalid_body",
    path: "itemsPath",
    detail: `itemsPath ${pathText} matches no value in the body`,
  });

/**
 * Returns whether the arrays and objects of a value are nested deeper than `limit`. For example, `[[1]]` has depth 2. Stops
 * descending at the limit.
 *
 * @param textLength length of the value's JSON text, if known. Each level needs two brackets, so the value is not traversed if
 *   the text is too short to exceed the limit
 */
export function exceedsDepth(value: unknown, limit: number, textLength = Number.POSITIVE_INFINITY): boolean {
  if (textLength <= 2 * limit || typeof value !== "object" || value === null) return false;
  return isDeeperThan(value, limit);
}

function isDeeperThan(container: object, limit: number): boolean {
  if (limit === 0) return true;
  if (Array.isArray(container)) {
    for (const child of container) {
      if (typeof child === "object" && child !== null && isDeeperThan(child, limit - 1)) return true;
    }
    return false;
  }
  // Use `for…in`, because `Object.values` would allocate an array for each object.
  for (const key in container) {
    const child: unknown = (container as Readonly<Record<string, unknown>>)[key];
    if (typeof child === "object" && child !== null && isDeeperThan(child, limit - 1)) return true;
  }
  return false;
}
