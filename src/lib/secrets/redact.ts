import { isUtf8 } from "node:buffer";

/** A text without certain secrets. */
export type Redact = (text: string) => string;

export const HIDDEN = "***";
/** A shorter text may stand there for reasons of its own. */
const MIN_SECRET_LENGTH = 8;
/** Nothing can replace a number in JSON and keep it readable. */
const NUMBER = /^[-+.\deE]*$/;

/** Takes secrets out of texts, also where they are spelled as in a form, an address or JSON. */
export function createRedact(secrets: readonly string[]): Redact {
  const hidden = secrets.filter((value) => value.length >= MIN_SECRET_LENGTH && !NUMBER.test(value));
  const spellings = new Set(
    hidden.flatMap((value) => {
      const inJson = JSON.stringify(value).slice(1, -1);
      return [value, encodeURIComponent(value), inJson, JSON.stringify(inJson).slice(1, -1)];
    }),
  );
  if (spellings.size === 0) return (text) => text;
  // The longest first: one that begins with another would leave its rest.
  const inOrder = [...spellings].sort((a, b) => b.length - a.length);
  return (text) => inOrder.reduce((redacted, value) => redacted.replaceAll(value, HIDDEN), text);
}

/** The bytes without the same secrets; the same object where there is none in them. */
export function redactBytes(body: Buffer, redact: Redact): Buffer {
  const encoding = isUtf8(body) ? "utf8" : "latin1";
  const text = body.toString(encoding);
  const redacted = redact(text);
  return redacted === text ? body : Buffer.from(redacted, encoding);
}

const { isRawJSON } = JSON as typeof JSON & { isRawJSON(value: unknown): boolean };

/** The value with all its texts redacted, names of members aside. */
export function redactTexts<T>(value: T, redact: Redact): T {
  const walk = (one: unknown): unknown => {
    if (typeof one === "string") return redact(one);
    if (Array.isArray(one)) return one.map(walk);
    if (typeof one !== "object" || one === null || isRawJSON(one)) return one;
    return Object.fromEntries(Object.entries(one).map(([name, member]) => [name, walk(member)]));
  };
  return walk(value) as T;
}
