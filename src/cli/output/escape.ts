/**
 * Characters that control a terminal or change the order of its text. They include control characters (C0, DEL, C1), line and
 * paragraph separators, and format characters such as bidirectional marks. Private-use characters and lone surrogates are also
 * included.
 */
const ACTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
/** The zero-width joiner. It is not escaped, because it is harmless and needed by emoji and several scripts. */
const ZERO_WIDTH_JOINER = "\u{200d}";
const NAMED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Escapes untrusted text for display on one line of a terminal. */
export const escapeText = (text: string): string =>
  text.replace(ACTIVE, (character) => {
    if (character === ZERO_WIDTH_JOINER) return character;
    const code = character.codePointAt(0) ?? 0;
    const hex = code.toString(16);
    return NAMED[character] ?? (code <= 0xff ? `\\x${hex.padStart(2, "0")}` : `\\u{${hex}}`);
  });

/** Escapes each line of a message. Line ends are not escaped, because they come from the program. */
export const escapeLines = (text: string): string => text.split("\n").map(escapeText).join("\n");

/** Escapes JSON text and puts it on one line. The JSON value stays the same, because line ends occur only between tokens. */
export const escapeJson = (json: string): string =>
  json
    .replace(/[\r\n\t]+/g, " ")
    .replace(ACTIVE, (character) =>
      character === ZERO_WIDTH_JOINER ? character : character.split("").map(escapeUnit).join(""),
    );

const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
