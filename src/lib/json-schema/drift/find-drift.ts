import type { JsonSchema } from "../compiled-schema.ts";
import { isNode, type SchemaNode } from "../generate/references.ts";
import { resolveSchema } from "../resolved-schema.ts";
import { accepts, typeOf } from "./accepts.ts";
import { type Half, Place, toStep } from "./place.ts";

export const DRIFT_KINDS = ["missing_field", "new_field", "type_changed"] as const;
export type DriftKind = (typeof DRIFT_KINDS)[number];

/**
 * Grade of a difference:
 *
 * - `breaking`: the schema rejects the value.
 * - `warning`: the schema accepts the value, but newer values differ from older ones.
 * - `info`: the schema accepts the field, but does not declare it.
 */
export const DRIFT_GRADES = ["breaking", "warning", "info"] as const;
export type DriftGrade = (typeof DRIFT_GRADES)[number];

/** A difference between a schema and values. It contains no value. */
export interface Drift {
  readonly kind: DriftKind;
  readonly grade: DriftGrade;
  /** JSON Pointer of the field. `*` stands for an index, and for a name that is or may be data. */
  readonly path: string;
  /** Number of values that differ. */
  readonly count: number;
}

export interface ComparedValues {
  /** Values in the order in which they arrived. The newer half is also compared with the older half. */
  readonly inOrder: readonly unknown[];
  /** Values that are only compared with the schema. */
  readonly others?: readonly unknown[];
}

/** Deeper values are not compared. */
const MAX_DEPTH = 24;
/** Maximum number of elements of each array, and of members of each object, that are compared. */
const MAX_CHILDREN = 200;
const MAX_DRIFTS = 100;
/** Minimum number of objects or values in each half for a comparison of the halves. */
const MIN_HALF = 10;
/** Fraction of the older objects that must have a field for the field to count as missing in the newer ones. */
const USUAL_PART = 0.95;

/** Compares values with a schema, and newer values with older ones. Returns at most 100 differences, breaking ones first. */
export function findDrift(schema: JsonSchema, { inOrder, others = [] }: ComparedValues): readonly Drift[] {
  const resolved = resolveSchema(schema);
  if (resolved === undefined || !isNode(resolved.root)) return [];
  const { root: document, references } = resolved;
  const found = new Map<string, Drift>();

  function compare(value: unknown, half: Half | undefined): void {
    /** Differences of this value, so that a value with several of them at a place counts once. */
    const own = new Map<string, Omit<Drift, "count">>();

    function report(kind: DriftKind, grade: DriftGrade, path: string): void {
      own.set(`${kind} ${grade} ${path}`, { kind, grade, path });
    }

    function visit(place: Place, value: unknown, depth: number): void {
      const type = typeOf(value);
      if (type === undefined || depth > MAX_DEPTH) return;
      if (half !== undefined) place.countType(half, type);
      if (!place.certain.every((one) => accepts(one, type, references)))
        report("type_changed", "breaking", place.path);
      else if (Array.isArray(value)) {
        const items = place.getItems();
        if (items) for (const item of value.slice(0, MAX_CHILDREN)) visit(items, item, depth + 1);
      } else if (isNode(value)) visitObject(place, value, depth);
    }

    function visitObject(place: Place, value: SchemaNode, depth: number): void {
      if (half !== undefined) place.countObject(half, value);
      for (const name of place.required)
        if (!Object.hasOwn(value, name)) report("missing_field", "breaking", `${place.path}/${toStep(name)}`);
      for (const [name, member] of Object.entries(value).slice(0, MAX_CHILDREN)) {
        const property = place.getProperty(name);
        if (property) visit(property, member, depth + 1);
        else if (place.isClosed || place.names.size > 0)
          report("new_field", place.isClosed ? "breaking" : "info", `${place.path}/${toStep(name)}`);
      }
    }

    visit(root, value, 0);
    for (const [key, drift] of own) {
      const count = (found.get(key)?.count ?? 0) + 1;
      if (count > 1 || found.size < MAX_DRIFTS) found.set(key, { ...drift, count });
    }
  }

  const root = new Place("", [document], [], references);
  const halfway = Math.floor(inOrder.length / 2);
  for (const [at, value] of inOrder.entries()) compare(value, at < halfway ? "older" : "newer");
  for (const value of others) compare(value, undefined);
  const all = [...found.values(), ...findTrends(root)].slice(0, MAX_DRIFTS);
  const rank = ({ grade }: Drift): number => DRIFT_GRADES.indexOf(grade);
  return all.sort((a, b) => rank(a) - rank(b) || b.count - a.count || (a.path < b.path ? -1 : 1));
}

/** Yields the differences between the newer and the older half of the values, at a place and below it. */
function* findTrends(place: Place): Generator<Drift> {
  const { path, objects, present, types, required } = place;
  if (objects.older >= MIN_HALF && objects.newer >= MIN_HALF)
    for (const [name, { older, newer }] of present)
      if (newer === 0 && older >= USUAL_PART * objects.older && !required.has(name))
        yield {
          kind: "missing_field",
          grade: "warning",
          path: `${path}/${toStep(name)}`,
          count: objects.newer,
        };
  const [older, newer] = [totalsOf(types.older), totalsOf(types.newer)];
  const isComparable = older.total >= MIN_HALF && newer.total >= MIN_HALF;
  if (isComparable && [...newer.types].every((type) => !older.types.has(type)))
    yield { kind: "type_changed", grade: "warning", path, count: newer.total };
  for (const child of place.children) yield* findTrends(child);
}

/** Counts values by type. Leaves out null, and does not distinguish integers from other numbers. */
function totalsOf(counts: Place["types"][Half]) {
  const types = new Set<string>();
  let total = 0;
  for (const [type, count] of counts) {
    if (type === "null") continue;
    types.add(type === "integer" ? "number" : type);
    total += count;
  }
  return { types, total };
}
