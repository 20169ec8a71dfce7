import { err, ok, type Result } from "../../lib/result.ts";

/** The values that a path yields; none where it leads nowhere. */
export type BodyPath = (root: unknown) => readonly unknown[];

export type Step = { readonly key: string | number } | { readonly key: undefined };

const STEP =
  /\.(?<name>[\p{L}_][\p{L}\p{N}_-]*)|\[(?:'(?<single>[^'\\]*)'|"(?<double>[^"\\]*)"|(?<index>0|[1-9]\d{0,5})|(?<all>\*))\]/uy;

/** Values that one path may yield: more is no credential, no id and no time. */
const MAX_VALUES = 1_000;

/**
 * Parses the paths by which verification looks into a body: of RFC 9535 the root, member names (`.name`, `['any name']`),
 * indexes from 0 and `[*]`. The item's own paths are read after verification, by all of that standard; here nothing is
 * believed yet, so nothing may cost more than one walk.
 */
export function parseBodyPath(text: string): Result<readonly Step[], string> {
  if (!text.startsWith("$")) return err("must begin with $");
  const steps: Step[] = [];
  for (let end = 1; end < text.length; ) {
    STEP.lastIndex = end;
    const groups = STEP.exec(text)?.groups;
    if (groups === undefined) {
      return err(
        `is not a path from ${JSON.stringify(text.slice(end))} on: .name, ['name'], [0] and [*] are`,
      );
    }
    const name = groups.name ?? groups.single ?? groups.double;
    if (groups.all !== undefined) steps.push({ key: undefined });
    else steps.push({ key: name ?? Number(groups.index) });
    end = STEP.lastIndex;
  }
  return ok(steps);
}

/** Compiles such a path. */
export function compileBodyPath(text: string): Result<BodyPath, string> {
  const parsed = parseBodyPath(text);
  if (!parsed.ok) return parsed;
  return ok((root) => {
    let values: readonly unknown[] = [root];
    for (const step of parsed.value) {
      values = values.flatMap((value) => follow(value, step));
      if (values.length > MAX_VALUES) return [];
    }
    return values;
  });
}

function follow(value: unknown, { key }: Step): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [];
  if (key === undefined) return Object.values(value);
  if (typeof key === "number") return Array.isArray(value) && key < value.length ? [value[key]] : [];
  if (Array.isArray(value) || !Object.hasOwn(value, key)) return [];
  return [(value as Readonly<Record<string, unknown>>)[key]];
}
