import { FORMATS } from "../generate/formats.ts";
import { isIdentifier } from "./identifiers.ts";

export interface InferOptions {
  /** Whether strings with few distinct values become an `enum`. Otherwise, the schema contains no value of a sample. */
  readonly enumValues: boolean;
}

type JsonType = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

/** Everything seen at one place of the samples. */
interface Shape {
  readonly types: Set<JsonType>;
  formats: readonly string[] | undefined;
  /** Distinct strings. `undefined` if there are too many for an `enum`. */
  strings: Set<string> | undefined;
  stringCount: number;
  objectCount: number;
  properties: Map<string, { count: number; readonly shape: Shape }>;
  /** Values of the keys that are ids. */
  entries: Shape | undefined;
  isMap: boolean;
  items: Shape | undefined;
  /** Whether the inferred schema accepts any value here, because a limit of depth or size was reached. */
  isOpen: boolean;
}

/** Deeper values are not described, so that a schema stays within the limits of stored schemas. */
const MAX_DEPTH = 24;
const MAX_PROPERTIES = 200;
/** Maximum number of places that are described. */
const MAX_SHAPES = 5_000;
/** An object with at least this many distinct keys is a map if its keys rarely occur together. */
const MIN_MAP_KEYS = 20;
const MAP_PRESENCE = 0.25;
const MAX_ENUM = 10;
const MAX_ENUM_LENGTH = 64;
/** Number of strings per distinct value from which on the values are an `enum`. */
const ENUM_REPEATS = 3;
const FORMAT_NAMES = ["date-time", "date", "uuid", "email", "uri", "ipv4", "ipv6"] as const;

/** Infers a JSON Schema that accepts every sample. */
export function inferSchema(
  samples: readonly unknown[],
  { enumValues }: InferOptions,
): Readonly<Record<string, unknown>> {
  let shapes = 0;

  function createShape(): Shape {
    shapes++;
    return {
      types: new Set(),
      formats: undefined,
      strings: new Set(),
      stringCount: 0,
      objectCount: 0,
      properties: new Map(),
      entries: undefined,
      isMap: false,
      items: undefined,
      isOpen: shapes > MAX_SHAPES,
    };
  }

  function add(shape: Shape, value: unknown, depth: number): void {
    if (shape.isOpen) return;
    const type = typeOf(value);
    if (type === undefined || depth > MAX_DEPTH) {
      shape.isOpen = true;
      return;
    }
    shape.types.add(type);
    if (typeof value === "string") addString(shape, value);
    if (Array.isArray(value) && value.length > 0) {
      shape.items ??= createShape();
      for (const item of value) add(shape.items, item, depth + 1);
    } else if (typeof value === "object" && value !== null && !Array.isArray(value))
      addObject(shape, value, depth);
  }

  function addObject(shape: Shape, value: object, depth: number): void {
    shape.objectCount++;
    for (const [key, member] of Object.entries(value)) {
      if (shape.isMap || isIdentifier(key)) {
        shape.entries ??= createShape();
        add(shape.entries, member, depth + 1);
        continue;
      }
      const property = shape.properties.get(key) ?? { count: 0, shape: createShape() };
      property.count++;
      shape.properties.set(key, property);
      add(property.shape, member, depth + 1);
    }
    if (shape.properties.size > MAX_PROPERTIES) becomeMap(shape);
  }

  /** Treats all keys of an object as ids. */
  function becomeMap(shape: Shape): void {
    shape.isMap = true;
    shape.entries ??= createShape();
    for (const { shape: member } of shape.properties.values()) merge(shape.entries, member);
    shape.properties = new Map();
  }

  /** Adds everything that was seen at another place. */
  function merge(into: Shape, from: Shape): void {
    into.isOpen ||= from.isOpen;
    if (from.types.has("string"))
      into.formats = into.formats?.filter((name) => from.formats?.includes(name)) ?? from.formats;
    for (const type of from.types) into.types.add(type);
    into.strings = mergeStrings(into.strings, from.strings);
    into.stringCount += from.stringCount;
    into.objectCount += from.objectCount;
    into.items = mergeOptional(into.items, from.items);
    into.entries = mergeOptional(into.entries, from.entries);
    for (const [key, { count, shape }] of from.properties) {
      const property = into.properties.get(key) ?? { count: 0, shape: createShape() };
      property.count += count;
      merge(property.shape, shape);
      into.properties.set(key, property);
    }
    if (from.isMap || into.isMap || into.properties.size > MAX_PROPERTIES) becomeMap(into);
  }

  function mergeOptional(into: Shape | undefined, from: Shape | undefined): Shape | undefined {
    if (from === undefined) return into;
    const merged = into ?? createShape();
    merge(merged, from);
    return merged;
  }

  function render(shape: Shape): Record<string, unknown> {
    if (shape.isOpen) return {};
    if (hasRareKeys(shape)) becomeMap(shape);
    const { types, formats, strings, stringCount, objectCount, properties, entries, items } = shape;
    const shown = [...types].filter((type) => type !== "integer" || !types.has("number"));
    if (shown.length === 0) return {};
    const [format] = formats ?? [];
    const required = [...properties].filter(([, { count }]) => count === objectCount).map(([key]) => key);
    const isEnum =
      enumValues && strings !== undefined && types.size === 1 && stringCount >= ENUM_REPEATS * strings.size;
    return {
      type: shown.length === 1 ? shown[0] : shown,
      ...(format !== undefined && { format }),
      ...(isEnum && strings.size > 0 && { enum: [...strings] }),
      ...(properties.size > 0 && {
        properties: Object.fromEntries([...properties].map(([key, one]) => [key, render(one.shape)])),
      }),
      ...(required.length > 0 && { required }),
      ...(entries && { additionalProperties: render(entries) }),
      ...(items && { items: render(items) }),
    };
  }

  const root = createShape();
  for (const sample of samples) add(root, sample, 0);
  return { $schema: "https://json-schema.org/draft/2020-12/schema", ...render(root) };
}

function typeOf(value: unknown): JsonType | undefined {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") {
    if (!Number.isFinite(value)) return undefined;
    return Number.isInteger(value) ? "integer" : "number";
  }
  const type = typeof value;
  return type === "boolean" || type === "string" || type === "object" ? type : undefined;
}

function addString(shape: Shape, text: string): void {
  shape.formats = (shape.formats ?? FORMAT_NAMES).filter((name) => hasFormat(name, text));
  shape.stringCount++;
  if (text.length > MAX_ENUM_LENGTH) shape.strings = undefined;
  else shape.strings = mergeStrings(shape.strings, new Set([text]));
}

function mergeStrings(a: Set<string> | undefined, b: Set<string> | undefined): Set<string> | undefined {
  const all = a && b && new Set([...a, ...b]);
  return all === undefined || all.size > MAX_ENUM ? undefined : all;
}

/** Maximum length of a text whose format is tested. */
const MAX_FORMATTED = 2_048;

/** Uses the validator's own definition of a format, so that the schema accepts the text. */
function hasFormat(name: string, text: string): boolean {
  if (text.length > MAX_FORMATTED) return false;
  const format = FORMATS[name];
  if (format instanceof RegExp) return format.test(text);
  if (typeof format === "function") return format(text);
  if (typeof format !== "object" || !("validate" in format)) return false;
  const { validate } = format;
  if (validate instanceof RegExp) return validate.test(text);
  return typeof validate === "function" && (validate as (text: string) => boolean)(text) === true;
}

/** Returns whether an object has many keys that rarely occur together, such as the names of users. */
function hasRareKeys({ isMap, properties, objectCount }: Shape): boolean {
  if (isMap || properties.size < MIN_MAP_KEYS) return false;
  const present = [...properties.values()].reduce((sum, { count }) => sum + count, 0);
  return objectCount > 1 && present / properties.size / objectCount < MAP_PRESENCE;
}
