import { useMemo } from "preact/hooks";
import { appendStep, parseSimplePath, readFirst } from "../../kit/text/simple-path.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { PATH_FIELDS, type PathField, type PathTarget } from "./path-target.ts";

/** A delivery whose fields can be picked. */
export interface Pickable {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

interface Props {
  readonly delivery: Pickable;
  /** Path to the items of a delivery. `undefined` if the delivery is a single item. */
  readonly itemsPath: string | undefined;
  readonly target: PathTarget;
  readonly onTarget: (field: PathField) => void;
  readonly onPick: (path: string) => void;
}

/** Maximum number of fields that are listed. Later fields of a large body must be typed. */
const MAX_FIELDS = 300;

interface Row {
  readonly path: string;
  readonly name: string | number;
  readonly depth: number;
  /** `undefined` for objects and arrays, whose fields follow. */
  readonly value: string | undefined;
}

/** Lists the fields of a delivery. A click on a field sets the path of the chosen setting. */
export function PathPicker({ delivery, itemsPath, target, onTarget, onPick }: Props) {
  const { body, headers } = delivery;
  const item = useMemo(() => parseItem(body, itemsPath), [body, itemsPath]);
  const rows = useMemo(
    () => [...listRows(item, "$", 0), ...listRows(headers, "$headers", 0)],
    [item, headers],
  );
  if (rows.length === 0) return null;
  return (
    <section class="path-picker stack" aria-label="Fields of the delivery">
      <label class="field">
        <span class="field-name">Click a field to use its path as</span>
        <select value={target.field} onChange={(event) => onTarget(event.currentTarget.value as PathField)}>
          {PATH_FIELDS.map((field) => (
            <option key={field} value={field}>
              {field} of definition {target.index + 1}
            </option>
          ))}
        </select>
      </label>
      <ul>
        {rows.slice(0, MAX_FIELDS).map(({ path, name, depth, value }) => (
          <li key={path} style={{ paddingInlineStart: `${depth * 16}px` }}>
            <button type="button" title={path} onClick={() => onPick(path)}>
              <UntrustedText max={100}>{name}</UntrustedText>
            </button>
            {value !== undefined && (
              <code class="soft">
                <UntrustedText max={120}>{value}</UntrustedText>
              </code>
            )}
          </li>
        ))}
      </ul>
      {rows.length > MAX_FIELDS && <p class="faint">Later fields are not listed. Type their paths.</p>}
    </section>
  );
}

/** Returns the first item of the body, or `undefined` if the body is not JSON or the console cannot evaluate `itemsPath`. */
function parseItem(body: string, itemsPath: string | undefined): unknown {
  const path = parseSimplePath(itemsPath ?? "$");
  try {
    return path && readFirst(JSON.parse(body), path.steps);
  } catch {
    return undefined;
  }
}

function listRows(value: unknown, path: string, depth: number): readonly Row[] {
  if (typeof value !== "object" || value === null) return [];
  const entries: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? value.map((one, index) => [index, one])
    : Object.entries(value);
  const rows: Row[] = [];
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
