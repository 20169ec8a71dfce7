import { err, ok, type Result } from "../../../lib/result.ts";
import type { Placeholder } from "../../../lib/template.ts";
import type { TimestampFormat } from "../../../lib/timestamps.ts";
import { findPatternError, formatInstant, formatPattern, INSTANT_FORMATS } from "../config/timestamps.ts";

export type TemplateValue =
  | { readonly kind: "text"; readonly text: string }
  /** A time. `format` applies if the placeholder names no other format. */
  | { readonly kind: "instant"; readonly ms: number; readonly format: TimestampFormat };

/** Placeholders that a channel's requests may contain, with the type of each value. */
export type TemplateNames = ReadonlyMap<string, TemplateValue["kind"]>;

/** Values of the placeholders in one request. A placeholder without an entry has no value yet. */
export type TemplateContext = ReadonlyMap<string, TemplateValue>;

/** Filters that format a time. */
const INSTANT_FILTERS: ReadonlyMap<string, (ms: number) => string> = new Map(
  INSTANT_FORMATS.map((format) => [format, (ms) => formatInstant(ms, format)]),
);
const PATTERN = /^pattern:\s*(.+)$/;

/** Filters that escape text in a placeholder. They run after the filter that formats a time. */
const TEXT_FILTERS: ReadonlyMap<string, (text: string) => string> = new Map([
  // `toWellFormed` is needed because `encodeURIComponent` throws on lone surrogates, which a server's token may contain.
  ["urlencoded", (text) => encodeURIComponent(text.toWellFormed())],
  ["json", (text) => JSON.stringify(text).slice(1, -1)],
]);

export const FILTER_NAMES: readonly string[] = [
  ...INSTANT_FILTERS.keys(),
  "pattern:yyyy-MM-dd HH:mm:ss",
  ...TEXT_FILTERS.keys(),
];

/** Compiles a placeholder. Returns an error message if the placeholder is invalid. */
export function bindPlaceholder(
  { name, filters }: Placeholder,
  names: TemplateNames,
): Result<(context: TemplateContext) => string, string> {
  const kind = names.get(name);
  if (kind === undefined) return err(`unknown placeholder ${name}; ${listNames(names)}`);
  let format: ((ms: number) => string) | undefined;
  const writers: ((text: string) => string)[] = [];
  for (const filter of filters) {
    const write = TEXT_FILTERS.get(filter);
    const pattern = PATTERN.exec(filter)?.[1];
    const unknown = pattern === undefined ? undefined : findPatternError(pattern);
    if (unknown !== undefined) return err(`filter ${filter} ${unknown}`);
    const instant =
      pattern === undefined ? INSTANT_FILTERS.get(filter) : (ms: number) => formatPattern(ms, pattern);
    if (write !== undefined) writers.push(write);
    else if (instant === undefined)
      return err(`unknown filter ${filter}; available: ${FILTER_NAMES.join(", ")}`);
    else if (kind !== "instant") return err(`filter ${filter} requires a time, but ${name} is not a time`);
    else if (format !== undefined || writers.length > 0)
      return err(`filter ${filter} must come first and only once`);
    else format = instant;
  }
  return ok((context) => {
    const value = context.get(name);
    if (value === undefined) return "";
    const text =
      value.kind === "text" ? value.text : (format?.(value.ms) ?? formatInstant(value.ms, value.format));
    return writers.reduce((written, write) => write(written), text);
  });
}

const listNames = (names: TemplateNames): string =>
  names.size === 0 ? "no placeholders are available" : `available: ${[...names.keys()].join(", ")}`;
