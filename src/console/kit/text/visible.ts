/** A part of a text: as it is, or a character that would hide or turn what stands around it. */
export type Piece = { readonly text: string } | { readonly escape: string };

/**
 * Control characters but line feeds and tabs, what turns the direction of writing, what has no width, other line ends, lone
 * surrogates, tags: all by which a text shows other than what it holds.
 */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/gu;

/** A stranger's text in pieces, the hidden characters by their numbers. */
export function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) pieces.push({ text: text.slice(from, match.index) });
    pieces.push({ escape: escapeOf(match[0]) });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from) });
  return pieces;
}

/** The same as one string: for titles, labels, and what is read aloud. */
export const visibleText = (text: string): string => text.replace(HIDDEN, escapeOf);

function escapeOf(character: string): string {
  const number = character.codePointAt(0) ?? 0;
  const hex = number.toString(16).toUpperCase();
  return number > 0xffff ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
}
