/**
 * Matches characters that control a terminal or reorder its text, such as control and bidirectional characters. Also matches
 * private-use characters and lone surrogates.
 */
const ACTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
/** Zero-width joiner, which is not escaped. It is harmless, and emoji and several scripts require it. */
const ZERO_WIDTH_JOINER = "\u{200d}";
const NAMED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Escapes untrusted text so that it can be displayed on one line of a terminal. */
export const escapeText = (text: string): string =>
  text.replace(ACTIVE, (character) => {
    if (character === ZERO_WIDTH_JOINER) return character;
    const code = character.codePointAt(0) ?? 0;
    const hex = code.toString(16);
    return NAMED[character] ?? (code <= 0xff ? `\\x${hex.padStart(2, "0")}` : `\\u{${hex}}`);
  });

/** Escapes each line of a message, but keeps the line ends, which the program itself inserted. */
export const escapeLines = (text: string): string => text.split("\n").map(escapeText).join("\n");

/** Escapes JSON text and puts it on one line without changing its value, because line ends in JSON only occur between tokens. */
export const escapeJson = (json: string): string =>
  json
    .replace(/[\r\n\t]+/g, " ")
    .replace(ACTIVE, (character) =>
      character === ZERO_WIDTH_JOINER ? character : character.split("").map(escapeUnit).join(""),
    );

const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
