/**
 * Prints each sentence below the given paths that breaks a rule of wording, and rates per 1,000 words by kind of text.
 *
 * usage: node test/support/language/report.ts [path ...]
 */
import { EXCEPTIONS } from "./exceptions.ts";
import { collectTexts, type Text } from "./texts.ts";
import { countTextWords, findViolations, formatViolation, isExcepted } from "./violations.ts";

const texts = collectTexts(process.argv.slice(2));
const violations = findViolations(texts).filter((violation) => !isExcepted(violation, EXCEPTIONS));
for (const violation of violations) console.log(formatViolation(violation));

const KINDS: readonly Text["kind"][] = ["comment", "message", "doc", "test name"];
for (const kind of KINDS) {
  const words = countTextWords(texts.filter((text) => text.kind === kind));
  const found = violations.filter((violation) => violation.kind === kind);
  const byRule = [...Map.groupBy(found, ({ rule }) => rule)].map(
    ([rule, list]) => `${rule} ${list.length} (${((1000 * list.length) / words).toFixed(2)})`,
  );
  console.log(`${kind}: ${words} words; ${byRule.join(", ") || "no violations"}`);
}
process.exitCode = violations.length > 0 ? 1 : 0;
