import { RE2JS } from "re2js";
import { translateEcmaPattern } from "./ecma-to-re2.ts";

/** A compiled regular expression whose matching time is linear in the length of the text. */
export interface LinearRegExp {
  test(text: string): boolean;
  /** Returns the pattern with its flags, because Ajv uses this text as the cache key. */
  toString(): string;
  /**
   * Number of instructions in the automaton of the pattern. Matching takes up to about 50 ns per instruction and character of text.
   */
  readonly size: number;
}

/** Thrown when a pattern is invalid or cannot be matched in linear time. The message is for the author of the pattern. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}

/** Maximum number of instructions in an automaton. Building an automaton of this size takes about 50 ms. */
const MAX_SIZE = 20_000;
const MAX_SOURCE_LENGTH = 20_000;
const SHOWN_LENGTH = 100;

/**
 * Compiles an ECMAScript pattern with re2js, which never backtracks. Matching time is therefore linear in the lengths of pattern
 * and text.
 *
 * Patterns have the syntax of the flag `u` (ECMA-262, section 22.2.1), except that any punctuation character may be escaped. The
 * supported flags are `u`, `i` and `s`.
 *
 * @throws PatternError for look-around, back-references, syntax errors and patterns that are too large
 */
export function compileLinearRegExp(source: string, flags = "u"): LinearRegExp {
  if (!/^[uis]*$/.test(flags)) throw new PatternError(`the flags ${JSON.stringify(flags)} are not supported`);
  if (source.length > MAX_SOURCE_LENGTH) {
    throw createError(source, `patterns must have at most ${MAX_SOURCE_LENGTH} characters`);
  }
  const program = compile(source, flags);
  const size = program.programSize();
  if (size > MAX_SIZE) throw createError(source, `its automaton has more than ${MAX_SIZE} instructions`);
  return { size, test: (text) => program.test(text), toString: () => `/${source}/${flags}` };
}

function compile(source: string, flags: string): RE2JS {
  const dotAll = flags.includes("s");
  try {
    const translated = translateEcmaPattern(source, { dotAll });
    return RE2JS.compile(translated, flags.includes("i") ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (error) {
    throw createError(source, error instanceof Error ? error.message : String(error), error);
  }
}

function createError(source: string, reason: string, cause?: unknown): PatternError {
  const shown = source.length > SHOWN_LENGTH ? `${source.slice(0, SHOWN_LENGTH)}…` : source;
  return new PatternError(`the pattern ${JSON.stringify(shown)} is not supported: ${reason}`, { cause });
}
