/**
 * Locates values in a JSON text without parsing the text again. Only pass text that `JSON.parse` has accepted, because the scanner
 * does not validate it.
 */

import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipScalar,
  skipSpace,
  skipString,
} from "../../event/json-tokens.ts";
import { parseJson } from "../../event/parse-json.ts";

/** Path to a nested JSON value, made of member names and non-negative array indexes. */
export type Location = readonly (string | number)[];

/** Search tree of the locations to find, so that one pass over the text finds all of them. */
export interface Targets {
  /** Indexes, in the list passed to `buildTargets`, of the locations that end at this node. */
  readonly slots: number[];
  readonly children: Map<string | number, Targets>;
}

/**
 * Start (inclusive) and end (exclusive) of the value at each location, in the order of the locations. Values that were not found
 * leave holes.
 */
export interface Spans {
  readonly starts: number[];
  readonly ends: number[];
}

/** Builds the search tree for a list of locations. `undefined` entries are skipped, but still count in the indexes. */
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
 * Scans the JSON value at index `at`, and records where the target values inside it start and end. Returns the end index of the
 * scanned value.
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

/** Returns the end index of the JSON value that starts at index `at`. */
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
    // If a member name is repeated, overwrite the earlier position, because `JSON.parse` also keeps the last value.
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
  return raw.includes("\\") ? (parseJson(text.slice(start, end)) as string) : raw;
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
