import type { ExplainedDefinition, ExplainedPath } from "../event/explained.ts";
import type { RulePath, RuleSet } from "./compile.ts";
import type { ItemContext } from "./item.ts";
import { ItemReader } from "./item-reader.ts";
import { PathBudgetError } from "./paths/path.ts";

/** A budget of its own: what is explained must not change what is run. */
const PATH_BUDGET = 200_000;
const MOST_VALUES = 10;
const MOST_CHARS = 256;

/** Reads the paths of all definitions over an item: of every step what it yields, whatever comes of it. */
export function explainItem(
  { always, groups }: RuleSet,
  context: ItemContext,
): readonly ExplainedDefinition[] {
  const reader = new ItemReader(context, { left: PATH_BUDGET });
  const explained: (ExplainedDefinition & { readonly index: number })[] = [];
  for (const rule of always) {
    const { index, type, topic, idPath, payloadPath } = rule;
    explained.push({
      ...{ index, type, topic, matches: true, typePath: null },
      idPath: explainPath(idPath, reader),
      payloadPath: explainPath(payloadPath, reader),
    });
  }
  for (const { path, byType } of groups) {
    const typePath = explainPath(path, reader);
    const values = valuesOf(path, reader).map(String);
    for (const { index, type, topic, idPath, payloadPath } of byType.values()) {
      explained.push({
        ...{ index, type, topic, typePath, matches: values.includes(type) },
        idPath: explainPath(idPath, reader),
        payloadPath: explainPath(payloadPath, reader),
      });
    }
  }
  return explained.sort((a, b) => a.index - b.index).map(({ index: __, ...definition }) => definition);
}

function explainPath(path: RulePath | undefined, reader: ItemReader): ExplainedPath | null {
  if (path === undefined) return null;
  const values = valuesOf(path, reader);
  return {
    path: path.text,
    values: values.slice(0, MOST_VALUES).map((value) => shown(value)),
    isCut: values.length > MOST_VALUES,
  };
}

function valuesOf(path: RulePath, reader: ItemReader): readonly unknown[] {
  try {
    return reader.values(path);
  } catch (error) {
    if (error instanceof PathBudgetError) return [];
    throw error;
  }
}

function shown(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length <= MOST_CHARS ? text : `${text.slice(0, MOST_CHARS)}…`;
}
