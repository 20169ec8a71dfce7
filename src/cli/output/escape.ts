/**
 * What a terminal acts upon or shows in another order than it stands: controls (C0, DEL, C1), line and paragraph separators, format
 * characters such as those of writing direction and tags, private use, halves of surrogate pairs.
 */
const ACTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
/** Joins emoji, and letters of several scripts; it moves nothing. */
const ZERO_WIDTH_JOINER = "\u{200d}";
const NAMED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Strangers' text for one line of a terminal: what is not to be printed is shown as an escape. */
export const escapeText = (text: string): string =>
  text.replace(ACTIVE, (character) => {
    if (character === ZERO_WIDTH_JOINER) return character;
    const code = character.codePointAt(0) ?? 0;
    const hex = code.toString(16);
    return NAMED[character] ?? (code <= 0xff ? `\\x${hex.padStart(2, "0")}` : `\\u{${hex}}`);
  });

/** The same for a message of several lines: line ends are the program's own. */
export const escapeLines = (text: string): string => text.split("\n").map(escapeText).join("\n");

/** The same for JSON text, which stays the same JSON and becomes one line. Between its tokens line ends mean nothing. */
export const escapeJson = (json: string): string =>
  json
    .replace(/[\r\n\t]+/g, " ")
    .replace(ACTIVE, (character) =>
      character === ZERO_WIDTH_JOINER ? character : character.split("").map(escapeUnit).join(""),
    );

const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
