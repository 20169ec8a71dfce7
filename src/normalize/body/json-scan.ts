/**
 * Locates values in a JSON text without parsing it again. The text must already have been accepted by `JSON.parse`, because the scanner
 * does not validate it.
 */

/** Path to a nested value, made of member names and non-negative array indexes. */
export type Location = readonly (string | number)[];

/** Tree of the locations to find, so that one pass over the text finds all of them. */
export interface Targets {
  /** Positions in the list passed to `buildTargets` of the locations that end at this node. */
  readonly slots: number[];
  readonly children: Map<string | number, Targets>;
}

/**
 * Start (inclusive) and end (exclusive) of the value at each location. The arrays are indexed like the list of locations, with holes for
 * values that were not found.
 */
export interface Spans {
  readonly starts: number[];
  readonly ends: number[];
}

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** Builds the search tree for a list of locations. `undefined` entries are skipped but keep their index. */
export function buildTargets(locations: readonly (Location | undefined)[]): Targets {
  const root: Targets = { slots: [], children: new Map() };
  locations.forEach((location, slot) => {
    if (location === undefined) return;
    let target = root;
    for (const step of location) {
      const child = target.children.get(step) ?? { slots: [], children: new Map() };
      target.children.set(step, child);
      target = child;
    }
    target.slots.push(slot);
  });
  return root;
}

/**
 * Scans the value that starts at index `at` and records the spans of the target values inside it. Returns the index at which the value
 * ends.
 */
export function scanValue(text: string, at: number, target: Targets, spans: Spans): number {
  const code = text.charCodeAt(at);
  const { children, slots } = target;
  let end: number;
  if (children.size === 0) end = skipValue(text, at);
  else if (code === OPEN_BRACE) end = scanObject(text, at, children, spans);
  else if (code === OPEN_BRACKET) end = scanArray(text, at, children, spans);
  else end = skipValue(text, at);
  for (const slot of slots) {
    spans.starts[slot] = at;
    spans.ends[slot] = end;
  }
  return end;
}

export function skipSpace(text: string, from: number): number {
  let at = from;
  // In valid JSON, only whitespace has a character code of 32 or less between tokens.
  while (text.charCodeAt(at) <= 32) at++;
  return at;
}

/** Returns the index at which the value that starts at `at` ends. */
export function skipValue(text: string, at: number): number {
  switch (text.charCodeAt(at)) {
    case QUOTE:
      return skipString(text, at);
    case OPEN_BRACE:
    case OPEN_BRACKET:
      return skipContainer(text, at);
    default:
      return skipScalar(text, at);
  }
}

function scanObject(text: string, open: number, children: Targets["children"], spans: Spans): number {
  let at = skipSpace(text, open + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const keyEnd = skipString(text, at);
    const target = children.get(parseKey(text, at, keyEnd));
    at = skipSpace(text, skipSpace(text, keyEnd) + 1);
    // A repeated member overwrites the span of the earlier one, because `JSON.parse` keeps the last value too.
    at = skipSpace(text, target === undefined ? skipValue(text, at) : scanValue(text, at, target, spans));
    if (text.charCodeAt(at) === CLOSE_BRACE) break;
    at = skipSpace(text, at + 1);
  }
  return at + 1;
}

function scanArray(text: string, open: number, children: Targets["children"], spans: Spans): number {
  let at = skipSpace(text, open + 1);
  for (let index = 0; at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET; index++) {
    const target = children.get(index);
    at = skipSpace(text, target === undefined ? skipValue(text, at) : scanValue(text, at, target, spans));
    if (text.charCodeAt(at) === CLOSE_BRACKET) break;
    at = skipSpace(text, at + 1);
  }
  return at + 1;
}

function parseKey(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1);
  return raw.includes("\\") ? (JSON.parse(text.slice(start, end)) as string) : raw;
}

function skipString(text: string, open: number): number {
  let close = text.indexOf('"', open + 1);
  while (isEscaped(text, close)) close = text.indexOf('"', close + 1);
  return close + 1;
}

/** Returns whether the character at index `at` is escaped, that is, preceded by an odd number of backslashes. */
function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === BACKSLASH) before--;
  return (at - before) % 2 === 0;
}

function skipContainer(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = skipString(text, at) - 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (--depth === 0) return at + 1;
    }
  }
  return text.length;
}

/** Returns the end of a number, `true`, `false` or `null`: the next comma, bracket or whitespace, or the end of the text. */
function skipScalar(text: string, start: number): number {
  let at = start;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 44 || code <= 32 || code === CLOSE_BRACKET || code === CLOSE_BRACE) break;
  }
  return at;
}
