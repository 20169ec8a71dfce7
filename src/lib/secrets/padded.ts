import type { WrongField } from "../check-fields.ts";
import { listTexts } from "../json/list-texts.ts";

/**
 * Returns an error for each text in secret settings that has white space at its start or end, which is usually copied by mistake. Texts that
 * are already stored are accepted.
 */
export function findPadded(secrets: unknown, stored: unknown = {}): readonly WrongField[] {
  const known = new Set(listTexts(stored).map(({ text }) => text));
  return listTexts(secrets)
    .filter(({ text }) => text !== text.trim() && !known.has(text))
    .map(({ path }) => ({ path, message: "must not begin or end with white space; remove it" }));
}
