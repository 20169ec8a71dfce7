/** The regular expressions of JSONPath filters (I-Regexp, RFC 9485). */
import { compileLinearRegExp, type LinearRegExp, PatternError } from "../../lib/regexp/linear-regexp.ts";

export type PatternFunction = "match" | "search";

/**
 * Compiles a pattern for the query function `match` or `search`.
 *
 * @throws PatternError if the pattern is invalid or cannot be matched in linear time
 */
export function compilePattern(name: PatternFunction, pattern: string): LinearRegExp {
  // Reject unbalanced parentheses, because they would pair with the group that is added around the pattern below.
  if (!hasBalancedParentheses(pattern)) throw new PatternError("the pattern has unbalanced parentheses");
  const mapped = mapDots(pattern);
  return compileLinearRegExp(name === "match" ? `^(?:${mapped})$` : mapped, "u");
}

/** Like `compilePattern`, but returns `undefined` for a pattern that cannot be compiled. */
export function tryCompilePattern(name: PatternFunction, pattern: string): LinearRegExp | undefined {
  try {
    return compilePattern(name, pattern);
  } catch (error) {
    if (error instanceof PatternError) return undefined;
    throw error;
  }
}

function hasBalancedParentheses(pattern: string): boolean {
  let depth = 0;
  for (const [token] of pattern.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|[()]/gsu)) {
    if (token === "(") depth++;
    if (token === ")") depth--;
    if (depth < 0) return false;
  }
  return depth === 0;
}

/** Estimates the maximum number of automaton instructions of a pattern. Each repetition count multiplies the estimate. */
export function estimateMaxInstructions(pattern: string): number {
  let most = pattern.length;
  for (const [, least, last] of pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) {
    most *= Math.max(Number(least) + 1, Number(last ?? 0));
  }
  return most;
}

/** Replaces each dot outside a character class. In I-Regexp, a dot matches any character except line ends (RFC 9485 section 5.3). */
function mapDots(pattern: string): string {
  return pattern.replace(/\\.|\[(?:\\.|[^\]\\])*\]|\./gsu, (token) => (token === "." ? "[^\\n\\r]" : token));
}
