import type { ExplainedDefinition, ExplainedPath } from "../event/explained.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { Rule, RulePath } from "./compile.ts";
import { getRuleTopic } from "./entry.ts";
import type { ItemContext } from "./item.ts";
import { ItemReader } from "./item-reader.ts";
import { type NormalizeDeps, type Normalized, normalizeEach, type Selection } from "./normalize.ts";
import { PathBudgetError } from "./paths/path.ts";
import type { RuleSet } from "./rule-set.ts";
import type { ItemResult } from "./run-item.ts";

/** Maximum number of nodes that paths may visit to explain one item. Processing the delivery has its own, separate limit. */
export const PATH_BUDGET = 200_000;
const MAX_VALUES = 10;
const MAX_CHARS = 256;
/**
 * Maximum number of event definitions to explain per delivery. Explaining 1000 items with 1000 definitions each would take seconds.
 */
const MAX_STEPS = 5_000;

/**
 * Result of explaining a delivery. `steps` maps an item's index to the values that the paths of its definitions yield, up to
 * `MAX_STEPS` definitions.
 */
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
  selection?: Selection,
): Promise<Explained> {
  const steps = new Map<number, readonly ExplainedDefinition[]>();
  let left = MAX_STEPS;
  const onItem = (context: ItemContext): void => {
    if (left <= 0) return;
    const explained = explainItem(rules, context);
    left -= explained.length;
    steps.set(context.item.index, explained);
  };
  const each = await normalizeEach(rules, delivery, { ...deps, onItem }, selection);
  return each.kind === "each" ? { kind: "each", results: each.results, steps } : each;
}

/** Evaluates the paths of all event definitions on an item, including definitions that do not match. */
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

const explainPath = (path: RulePath | undefined, reader: ItemReader): ExplainedPath | null =>
  path === undefined ? null : explainValues(path, reader);

export function explainValues(path: RulePath, reader: ItemReader): ExplainedPath {
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
