import { isUtf8 } from "node:buffer";
import { parseJson } from "../../event/parse-json.ts";

export type Redact = (text: string) => string;

export const HIDDEN = "***";
/** Minimum length of a secret to redact, in characters. Shorter secrets would match unrelated text by coincidence. */
const MIN_SECRET_LENGTH = 8;
/** Matches numbers. Do not redact numbers, because the replacement text would make JSON invalid. */
const NUMBER = /^[-+.\deE]*$/;

interface RedactOptions {
  /** Values to hide in every place that contains nothing else, such as the string of a JSON member. They may be short, or numbers. */
  readonly wholeValues?: readonly string[];
  /** Called for each text after the secrets are replaced, to hide more in it. */
  readonly andThen?: Redact;
}

/** Maximum number of encodings within each other that are undone, such as JSON in a string of JSON in a form. */
const MAX_LAYERS = 4;
const JSON_STRING = /"(?:[^"\\]|\\.)*"/gs;
/** Separators of the names and values of forms, queries and headers. */
const SEPARATORS = /([&=?#;,\s"'<>]+)/;

/**
 * Creates a function that replaces secrets in a text. Strings of JSON, and parts of forms and URLs, are decoded before they are compared,
 * because a sender can spell a secret in many ways (`\/`, `\u002B`, `%61`).
 */
export function createRedact(secrets: readonly string[], options: RedactOptions = {}): Redact {
  const { wholeValues = [], andThen = (text) => text } = options;
  const whole = new Set(wholeValues.filter((value) => value !== ""));
  const hidden = secrets.filter((value) => value.length >= MIN_SECRET_LENGTH && !NUMBER.test(value));
  const spellings = new Set(
    hidden.flatMap((value) => {
      const inJson = JSON.stringify(value).slice(1, -1);
      const inForm = new URLSearchParams([["", value]]).toString().slice(1);
      return [
        value,
        encodeURIComponent(value.toWellFormed()),
        inForm,
        inJson,
        JSON.stringify(inJson).slice(1, -1),
      ];
    }),
  );
  // Replace long secrets first. If a short secret is the beginning of a longer one, replacing it first would leave the rest
  // visible.
  const inOrder = [...spellings].sort((a, b) => b.length - a.length);

  function redact(text: string, layers: number): string {
    if (whole.has(text)) return HIDDEN;
    const replaced = andThen(inOrder.reduce((redacted, value) => redacted.replaceAll(value, HIDDEN), text));
    if (layers === 0) return replaced;
    const inStrings =
      replaced.includes("\\") || (whole.size > 0 && replaced.includes('"'))
        ? replaced.replace(JSON_STRING, (literal) => redactString(literal, layers))
        : replaced;
    return inStrings.includes("%") || (whole.size > 0 && inStrings.includes("="))
      ? inStrings
          .split(SEPARATORS)
          .map((part) => redactPart(part, layers))
          .join("")
      : inStrings;
  }

  function redactString(literal: string, layers: number): string {
    let value: string;
    try {
      value = parseJson(literal) as string;
    } catch {
      return literal;
    }
    const redacted = redact(value, layers - 1);
    return redacted === value ? literal : JSON.stringify(redacted);
  }

  function redactPart(part: string, layers: number): string {
    if (!part.includes("%") && !whole.has(part)) return part;
    for (const spelled of [part, part.replaceAll("+", " ")]) {
      const value = decodeEscapes(spelled);
      const redacted = redact(value, layers - 1);
      if (redacted !== value) return encodeURIComponent(redacted.toWellFormed()).replaceAll("%2A", "*");
    }
    return part;
  }

  if (spellings.size === 0 && whole.size === 0 && options.andThen === undefined) return (text) => text;
  return (text) => redact(text, MAX_LAYERS);
}

/** Decodes percent escapes. Invalid UTF-8 becomes replacement characters, so that the rest can still be compared. */
function decodeEscapes(text: string): string {
  const parts = text.split(/((?:%[\da-f]{2})+)/i);
  return parts
    .map((part, index) =>
      index % 2 === 0 ? part : Buffer.from(part.replaceAll("%", ""), "hex").toString("utf8"),
    )
    .join("");
}

/** Replaces secrets in a body. Returns the same buffer if the body contains no secret. */
export function redactBytes(body: Buffer, redact: Redact): Buffer {
  const encoding = isUtf8(body) ? "utf8" : "latin1";
  const text = body.toString(encoding);
  const redacted = redact(text);
  return redacted === text ? body : Buffer.from(redacted, encoding);
}

const { isRawJSON } = JSON as typeof JSON & { isRawJSON(value: unknown): boolean };

/** Redacts all strings inside a value, except the names of members. */
export function redactTexts<T>(value: T, redact: Redact): T {
  const walk = (one: unknown): unknown => {
    if (typeof one === "string") return redact(one);
    if (Array.isArray(one)) return one.map(walk);
    if (typeof one !== "object" || one === null || isRawJSON(one)) return one;
    return Object.fromEntries(Object.entries(one).map(([name, member]) => [name, walk(member)]));
  };
  return walk(value) as T;
}
