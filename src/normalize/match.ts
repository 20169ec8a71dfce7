import type { Rule, RuleSet } from "./compile.ts";
import type { ItemReader } from "./item-reader.ts";

/**
 * The definitions that an item matches, in their order. A definition's type is compared, as a string, with each string,
 * number (as spelled) and boolean that its `typePath` yields.
 *
 * @throws PathBudgetError
 */
export function matchingRules(rules: RuleSet, reader: ItemReader): readonly Rule[] {
  const matched = [...rules.always];
  for (const { path, byType } of rules.groups) {
    const before = matched.length;
    for (const value of reader.values(path)) {
      const rule = byType.get(typeof value === "boolean" ? String(value) : (value as string));
      if (rule !== undefined && !matched.includes(rule, before)) matched.push(rule);
    }
  }
  return matched.length > 1 ? matched.sort((a, b) => a.index - b.index) : matched;
}
