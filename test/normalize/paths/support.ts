import { createPathCompiler, type PathRoot } from "../../../src/normalize/paths/jsonpath.ts";
import type { PathBudget } from "../../../src/normalize/paths/path.ts";

export const item: PathRoot = {};
export const headers: PathRoot = { hasLowerCaseNames: true };
export const query: PathRoot = {};
const named = new Map([
  ["headers", headers],
  ["query", query],
]);

export type Syntax = "rfc9535" | "jsonpath-plus";

export function compile(text: string, syntax: Syntax = "rfc9535") {
  return createPathCompiler({ syntax, item, named })(text);
}

export function messageOf(text: string, syntax?: Syntax): string {
  const result = compile(text, syntax);
  return result.ok ? "compiles" : result.error;
}

interface Found {
  readonly kind: string;
  readonly values: readonly unknown[];
}

export function run(
  text: string,
  data: unknown,
  syntax?: Syntax,
  budget: PathBudget = { left: 100_000 },
): Found {
  const result = compile(text, syntax);
  if (!result.ok) throw new Error(result.error);
  const { path } = result.value;
  if (path.kind === "query")
    return { kind: "query", values: path.select(data, budget).map(({ value }) => value) };
  const value = path.get(data);
  return { kind: "singular", values: value === undefined ? [] : [value] };
}

export const select = (text: string, data: unknown, syntax?: Syntax): readonly unknown[] =>
  run(text, data, syntax).values;
