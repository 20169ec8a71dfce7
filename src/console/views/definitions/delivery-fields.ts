import { appendStep, parseSimplePath, readFirst } from "../../kit/text/simple-path.ts";

/** A delivery whose fields can be picked. */
export interface Pickable {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

export interface FieldRow {
  readonly path: string;
  readonly name: string | number;
  readonly depth: number;
  /** `undefined` for objects and arrays, whose fields follow. */
  readonly value: string | undefined;
}

interface Source {
  /** Kind of the channel. */
  readonly kind: string;
  /** Path to the items of a delivery. `undefined` if the delivery is a single item. */
  readonly itemsPath: string | undefined;
}

/** Maximum number of fields that are listed. Later fields of a large body must be typed. */
export const MAX_FIELDS = 300;

/** Lists the fields of a delivery's first item, and then those of its headers, with the paths that read them. */
export function listFields({ body, headers }: Pickable, { kind, itemsPath }: Source): readonly FieldRow[] {
  const rows = listRows(parseItem(body, itemsPath), "$", 0);
  return kind === "sse"
    ? [...rows, ...listStreamFields(headers)]
    : [...rows, ...listRows(headers, "$headers", 0)];
}

/** The only headers of an event stream's deliveries that paths can read, with these paths. */
const STREAM_PATHS = [
  ["event", "$event"],
  ["last-event-id", "$lastEventId"],
] as const;

const listStreamFields = (headers: Pickable["headers"]): readonly FieldRow[] =>
  STREAM_PATHS.filter(([header]) => headers[header] !== undefined).map(([header, path]) => ({
    path,
    name: path.slice(1),
    depth: 0,
    value: JSON.stringify(headers[header]),
  }));

/** Returns the first item of the body, or `undefined` if the body is not JSON or the console cannot evaluate `itemsPath`. */
function parseItem(body: string, itemsPath: string | undefined): unknown {
  const path = parseSimplePath(itemsPath ?? "$");
  if (path === undefined || !BODY_ROOTS.includes(path.root)) return undefined;
  try {
    return readFirst(JSON.parse(body), path.steps);
  } catch {
    return undefined;
  }
}

/** Roots of `itemsPath` that stand for the body. */
const BODY_ROOTS = ["", "body"];

function listRows(value: unknown, path: string, depth: number): readonly FieldRow[] {
  if (typeof value !== "object" || value === null) return [];
  const entries: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? value.map((one, index) => [index, one])
    : Object.entries(value);
  const rows: FieldRow[] = [];
  for (const [name, one] of entries) {
    // One more than the maximum, so that the list is known to be incomplete.
    if (rows.length > MAX_FIELDS) break;
    const inner = appendStep(path, name);
    const isLeaf = typeof one !== "object" || one === null;
    const label = path === "$headers" ? `header ${name}` : name;
    rows.push({ path: inner, name: label, depth, value: isLeaf ? JSON.stringify(one) : undefined });
    if (!isLeaf) rows.push(...listRows(one, inner, depth + 1));
  }
  return rows;
}
