import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipScalar,
  skipSpace,
  skipString,
} from "./json-tokens.ts";

/**
 * Parses JSON. Returns the same as `JSON.parse` should, but is not affected by a bug of V8 that lets one text change how it reads later
 * ones. After V8 has parsed `{"x":1,"\\":1}`, it reads the second name of `{"x":1,"\u0061":1}` as a backslash. The reason is that the
 * escaped name has the expected length, and its source text starts with the expected name. V8 only misreads escaped names, so
 * `readValidJson` reads texts that contain some.
 *
 * @throws SyntaxError if the text is not valid JSON
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return hasEscapedName(text) ? readValidJson(text, Number) : value;
}

/** Returns whether the name of a member contains a backslash in this JSON text. Only pass valid JSON. */
export function hasEscapedName(text: string): boolean {
  let at = text.indexOf("\\");
  while (at !== -1) {
    const end = skipString(text, at);
    if (text.charCodeAt(skipSpace(text, end)) === COLON) return true;
    at = text.indexOf("\\", end);
  }
  return false;
}

type Members = Record<string, unknown>;

/** Parses valid JSON without the bug of V8. Does not recurse, because `JSON.parse` accepts any depth. */
export function readValidJson(text: string, readNumber: (source: string) => unknown): unknown {
  const root: unknown[] = [];
  const outer: (unknown[] | Members)[] = [];
  let container: unknown[] | Members = root;
  let name: string | undefined;
  const add = (value: unknown): void => {
    if (Array.isArray(container)) container.push(value);
    else setMember(container, name ?? "", value);
    name = undefined;
  };
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const start = at;
      at = skipString(text, at);
      const read = readString(text, start, at);
      if (name === undefined && !Array.isArray(container)) name = read;
      else add(read);
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      const inner: unknown[] | Members = code === OPEN_BRACE ? {} : [];
      add(inner);
      outer.push(container);
      container = inner;
      at++;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      container = outer.pop() ?? root;
      at++;
    } else if (code === COMMA || code === COLON) {
      at++;
    } else {
      const start = at;
      at = skipScalar(text, at);
      add(readScalar(text.slice(start, at), readNumber));
    }
  }
  return root[0];
}

function setMember(members: Members, name: string, value: unknown): void {
  if (name !== "__proto__") members[name] = value;
  // An assignment would set the prototype.
  else Object.defineProperty(members, name, { value, writable: true, enumerable: true, configurable: true });
}

/** From this length on, V8's `slice` returns a view that keeps the whole text in memory. */
const SLICED_FROM_LENGTH = 13;

function readString(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1);
  if (raw.length < SLICED_FROM_LENGTH && !raw.includes("\\")) return raw;
  return JSON.parse(text.slice(start, end)) as string;
}

function readScalar(source: string, readNumber: (source: string) => unknown): unknown {
  switch (source) {
    case "true":
      return true;
    case "false":
      return false;
    case "null":
      return null;
    default:
      return readNumber(source);
  }
}
