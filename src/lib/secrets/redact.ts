import { isUtf8 } from "node:buffer";

export type Redact = (text: string) => string;

export const HIDDEN = "***";
/** Minimum length of a secret to redact, in characters. Shorter secrets would match unrelated text by coincidence. */
const MIN_SECRET_LENGTH = 8;
/** Matches numbers. Do not redact numbers, because the replacement text would make JSON invalid. */
const NUMBER = /^[-+.\deE]*$/;

/** Creates a function that replaces secrets in a text. URL-encoded and JSON-escaped forms of a secret are replaced too. */
export function createRedact(secrets: readonly string[]): Redact {
  const hidden = secrets.filter((value) => value.length >= MIN_SECRET_LENGTH && !NUMBER.test(value));
  const spellings = new Set(
    hidden.flatMap((value) => {
      const inJson = JSON.stringify(value).slice(1, -1);
      return [value, encodeURIComponent(value), inJson, JSON.stringify(inJson).slice(1, -1)];
    }),
  );
  if (spellings.size === 0) return (text) => text;
  // Replace long secrets first. If a short secret is the beginning of a longer one, replacing it first would leave the rest
  // visible.
  const inOrder = [...spellings].sort((a, b) => b.length - a.length);
  return (text) => inOrder.reduce((redacted, value) => redacted.replaceAll(value, HIDDEN), text);
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
