import type { ExplainedDefinition, ExplainedPath } from "../event/explained.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { getRuleTopic, type Rule, type RulePath, type RuleSet } from "./compile.ts";
import type { ItemContext } from "./item.ts";
import { ItemReader } from "./item-reader.ts";
import { type NormalizeDeps, type Normalized, normalizeEach, type Selection } from "./normalize.ts";
import { PathBudgetError } from "./paths/path.ts";
import type { ItemResult } from "./run-item.ts";

/** A budget of its own: what is explained must not change what is run. */
const PATH_BUDGET = 200_000;
const MAX_VALUES = 10;
const MAX_CHARS = 256;
/** Definitions of items that are read for one delivery: a thousand items by a thousand definitions would take seconds. */
const MAX_STEPS = 5_000;

/** As `normalize` answers, but uncollected, and with what the paths yield of the first items that could be read, by their index. */
export type Explained =
  | {
      readonly kind: "each";
      readonly results: readonly ItemResult[];
      readonly steps: ReadonlyMap<number, readonly ExplainedDefinition[]>;
    }
  | Normalized;

export async function explainEach(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  deps: NormalizeDeps,
  only?: Selection,
): Promise<Explained> {
  const steps = new Map<number, readonly ExplainedDefinition[]>();
  let left = MAX_STEPS;
  const onItem = (context: ItemContext): void => {
    if (left <= 0) return;
    const explained = explainItem(rules, context);
    left -= explained.length;
    steps.set(context.item.index, explained);
  };
  const each = await normalizeEach(rules, delivery, { ...deps, onItem }, only);
  return each.kind === "each" ? { kind: "each", results: each.results, steps } : each;
}

/** Reads the paths of all definitions over an item: of every step what it yields, whatever comes of it. */
function explainItem(rules: RuleSet, context: ItemContext): readonly ExplainedDefinition[] {
  const { always, groups } = rules;
  const reader = new ItemReader(context, { left: PATH_BUDGET });
  const explained: (ExplainedDefinition & { readonly index: number })[] = [];
  const explain = (rule: Rule, typePath: ExplainedPath | null, matches: boolean): void => {
    const { index, type } = rule;
    const topic = getRuleTopic(rules, rule);
    const idPath = explainPath(rule.idPath, reader);
    const payloadPath = explainPath(rule.payloadPath, reader);
    explained.push({ index, type, topic, matches, typePath, idPath, payloadPath });
  };
  for (const rule of always) explain(rule, null, true);
  for (const { path, byType } of groups) {
    const typePath = explainPath(path, reader);
    const values = readValues(path, reader).map(String);
    for (const rule of byType.values()) explain(rule, typePath, values.includes(rule.type));
  }
  return explained.sort((a, b) => a.index - b.index).map(({ index: __, ...definition }) => definition);
}

function explainPath(path: RulePath | undefined, reader: ItemReader): ExplainedPath | null {
  if (path === undefined) return null;
  const values = readValues(path, reader);
  return {
    path: path.text,
    values: values.slice(0, MAX_VALUES).map(formatValue),
    isCut: values.length > MAX_VALUES,
  };
}

function readValues(path: RulePath, reader: ItemReader): readonly unknown[] {
  try {
    return reader.values(path);
  } catch (error) {
    if (error instanceof PathBudgetError) return [];
    throw error;
  }
}

function formatValue(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS)}…`;
}
