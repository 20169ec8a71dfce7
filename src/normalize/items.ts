import { type Body, readJson } from "./bodies.ts";
import type { RulePath } from "./compile.ts";
import { exceedsDepth } from "./depth.ts";
import type { Fault } from "./fault.ts";
import { type BrokenItem, type Item, MAX_ITEMS, type Split } from "./item.ts";
import {
  type PathBudget,
  PathBudgetError,
  type PathNode,
  type QueryPath,
  type SingularPath,
} from "./path.ts";

/** A body of many items may nest deeper than one of them, but not so deep that paths could not be run over it. */
const MAX_BODY_DEPTH = 1024;

/** Splits a body into its items: by `itemsPath`, by lines (NDJSON, to which `itemsPath` does not apply), else it is one. */
export function splitItems(body: Body, itemsPath: RulePath | undefined, budget: PathBudget): Split {
  if (body.kind === "ndjson") return splitLines(body.text ?? "");
  if (itemsPath === undefined) {
    return { kind: "items", items: [{ index: 0, value: body.value, json: body.json, isBody: true }] };
  }
  if (exceedsDepth(body.value, MAX_BODY_DEPTH, body.text?.length)) {
    return fault({ reason: "too_deep", detail: `the body nests deeper than ${MAX_BODY_DEPTH}` });
  }
  const { path } = itemsPath;
  return path.kind === "singular"
    ? splitSingular(body, itemsPath.text, path)
    : splitQuery(body, itemsPath.text, path, budget);
}

function splitSingular(body: Body, pathText: string, path: SingularPath): Split {
  const value = path.get(body.value);
  if (value === undefined) return nothingFound(pathText);
  const json = body.json?.find(path.targetsIn(body.value), value);
  if (!Array.isArray(value)) return { kind: "items", items: [{ index: 0, value, json, isBody: false }] };
  if (value.length > MAX_ITEMS) return { kind: "tooMany" };
  const texts = json?.elements();
  return {
    kind: "items",
    items: value.map((element, index) => ({ index, value: element, json: texts?.[index], isBody: false })),
  };
}

function splitQuery(body: Body, pathText: string, path: QueryPath, budget: PathBudget): Split {
  let nodes: readonly PathNode[];
  try {
    nodes = path.select(body.value, budget);
  } catch (error) {
    if (!(error instanceof PathBudgetError)) throw error;
    return fault({ reason: "path_budget", path: "itemsPath", detail: error.message });
  }
  if (nodes.length === 0) return nothingFound(pathText);
  if (nodes.length > MAX_ITEMS) return { kind: "tooMany" };
  const texts = body.json?.cut(nodes);
  return {
    kind: "items",
    items: nodes.map(({ value }, index) => ({ index, value, json: texts?.[index], isBody: false })),
  };
}

function splitLines(text: string): Split {
  const items: (Item | BrokenItem)[] = [];
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(start, text.charAt(end - 1) === "\r" ? end - 1 : end);
    start = end + 1;
    if (line.trim() === "") continue;
    if (items.length === MAX_ITEMS) return { kind: "tooMany" };
    items.push(readLine(line, items.length));
  }
  return { kind: "items", items };
}

function readLine(line: string, index: number): Item | BrokenItem {
  const json = readJson(line);
  if (!json.ok) return { index, fault: json.error };
  return { index, value: json.value.value, json: json.value, isBody: false };
}

const fault = (value: Fault): Split => ({ kind: "fault", fault: value });

const nothingFound = (pathText: string): Split =>
  fault({
    reason: "invalid_body",
    path: "itemsPath",
    detail: `itemsPath ${pathText} finds nothing in the body`,
  });
