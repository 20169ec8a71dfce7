import { RE2JS } from "re2js";
import { translateEcmaPattern } from "./ecma-to-re2.ts";

/** A compiled pattern whose test takes time linear in the length of the text. */
export interface LinearRegExp {
  test(text: string): boolean;
  /** The pattern and its flags, distinct for distinct patterns: Ajv keys its patterns by this. */
  toString(): string;
  /** Instructions of the automaton; one character of text costs at worst some 50 ns for each. */
  readonly size: number;
}

/** A pattern that is no regular expression, or none that can be matched in linear time. The message is for its author. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}

/** Building such an automaton takes some 50 ms. */
const MAX_SIZE = 20_000;
const MAX_SOURCE_LENGTH = 20_000;
const SHOWN_LENGTH = 100;

/**
 * Compiles an ECMAScript pattern for re2js, which never backtracks: no pattern and no text can hold up the event loop
 * for longer than their lengths say. Patterns are read as with the flag `u` (ECMA-262 section 22.2.1), except that any
 * escaped punctuation character stands for itself. Flags: any of `u`, `i`, `s`.
 *
 * @throws PatternError on look-around, back-references, syntax errors and patterns that are too large.
 */
export function compileLinearRegExp(source: string, flags = "u"): LinearRegExp {
  if (!/^[uis]*$/.test(flags)) throw new PatternError(`the flags ${JSON.stringify(flags)} are not supported`);
  if (source.length > MAX_SOURCE_LENGTH) {
    throw refused(source, `it is longer than ${MAX_SOURCE_LENGTH} characters`);
  }
  const program = compile(source, flags);
  const size = program.programSize();
  if (size > MAX_SIZE) throw refused(source, "its automaton is too large");
  return { size, test: (text) => program.test(text), toString: () => `/${source}/${flags}` };
}

function compile(source: string, flags: string): RE2JS {
  const dotAll = flags.includes("s");
  try {
    const translated = translateEcmaPattern(source, { dotAll });
    return RE2JS.compile(translated, flags.includes("i") ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (error) {
    throw refused(source, error instanceof Error ? error.message : String(error), error);
  }
}

function refused(source: string, reason: string, cause?: unknown): PatternError {
  const shown = source.length > SHOWN_LENGTH ? `${source.slice(0, SHOWN_LENGTH)}…` : source;
  return new PatternError(`the pattern ${JSON.stringify(shown)} is refused: ${reason}`, { cause });
}
