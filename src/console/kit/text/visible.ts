/** Part of a text: either plain text, or the escape of an invisible or misleading character. */
export type Piece = { readonly text: string } | { readonly escape: string };

/**
 * Invisible and misleading characters: control characters except line feed and tab, direction marks, zero-width
 * characters, line separators, lone surrogates and tags.
 */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/gu;

/** Splits untrusted text into plain text and the escapes of invisible characters. */
export function splitInvisible(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) pieces.push({ text: text.slice(from, match.index) });
    pieces.push({ escape: escapeCharacter(match[0]) });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from) });
  return pieces;
}

/** Replaces invisible characters with escapes, for places that need a string, such as titles. */
export const visibleText = (text: string): string => text.replace(HIDDEN, escapeCharacter);

function escapeCharacter(character: string): string {
  const number = character.codePointAt(0) ?? 0;
  const hex = number.toString(16).toUpperCase();
  return number > 0xffff ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
}
