import { isUtf8 } from "node:buffer";

export type Redact = (text: string) => string;

export const HIDDEN = "***";
/** Minimum length of a secret to redact, in characters. Shorter secrets would match unrelated text by coincidence. */
const MIN_SECRET_LENGTH = 8;
/** Matches numbers. They are not redacted, because the replacement would make JSON invalid. */
const NUMBER = /^[-+.\deE]*$/;

/** Creates a function that replaces secrets in a text, including their URL-encoded and JSON-escaped forms. */
export function createRedact(secrets: readonly string[]): Redact {
  const hidden = secrets.filter((value) => value.length >= MIN_SECRET_LENGTH && !NUMBER.test(value));
  const spellings = new Set(
    hidden.flatMap((value) => {
      const inJson = JSON.stringify(value).slice(1, -1);
      return [value, encodeURIComponent(value), inJson, JSON.stringify(inJson).slice(1, -1)];
    }),
  );
  if (spellings.size === 0) return (text) => text;
  // Replace long secrets first. Otherwise, a secret that begins with another one would be replaced only in part.
  const inOrder = [...spellings].sort((a, b) => b.length - a.length);
  return (text) => inOrder.reduce((redacted, value) => redacted.replaceAll(value, HIDDEN), text);
}

/** Returns the same buffer if the body contains no secret. */
export function redactBytes(body: Buffer, redact: Redact): Buffer {
  const encoding = isUtf8(body) ? "utf8" : "latin1";
  const text = body.toString(encoding);
  const redacted = redact(text);
  return redacted === text ? body : Buffer.from(redacted, encoding);
}

const { isRawJSON } = JSON as typeof JSON & { isRawJSON(value: unknown): boolean };

/** Redacts all strings in a value, but not the names of members. */
export function redactTexts<T>(value: T, redact: Redact): T {
  const walk = (one: unknown): unknown => {
    if (typeof one === "string") return redact(one);
    if (Array.isArray(one)) return one.map(walk);
    if (typeof one !== "object" || one === null || isRawJSON(one)) return one;
    return Object.fromEntries(Object.entries(one).map(([name, member]) => [name, walk(member)]));
  };
  return walk(value) as T;
}
