/** Finds the ends of tokens in a JSON text. Only pass text that `JSON.parse` has accepted, because these functions do not validate it. */

export const QUOTE = 34;
export const COMMA = 44;
export const COLON = 58;
export const BACKSLASH = 92;
export const OPEN_BRACKET = 91;
export const CLOSE_BRACKET = 93;
export const OPEN_BRACE = 123;
export const CLOSE_BRACE = 125;

export function skipSpace(text: string, from: number): number {
  let at = from;
  // Between tokens of valid JSON, only whitespace has character codes up to 32.
  while (text.charCodeAt(at) <= 32) at++;
  return at;
}

/** Returns the end index of the string that contains index `at`. A string contains its opening quote, but not its closing quote. */
export function skipString(text: string, at: number): number {
  let close = text.indexOf('"', at + 1);
  while (isEscaped(text, close)) close = text.indexOf('"', close + 1);
  return close + 1;
}

/** Returns whether the character at index `at` is escaped: an odd number of backslashes precedes it. */
export function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === BACKSLASH) before--;
  return (at - before) % 2 === 0;
}

/**
 * Returns the end index of a number, `true`, `false` or `null`. It ends at a comma, bracket or whitespace, or at the end of the
 * text.
 */
export function skipScalar(text: string, start: number): number {
  let at = start;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code <= 32 || code === CLOSE_BRACKET || code === CLOSE_BRACE) break;
  }
  return at;
}
