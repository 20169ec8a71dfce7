import { err, ok, type Result } from "../../lib/result.ts";

/** Returns the values at a path in a body, or an empty array if there are none. */
export type BodyPath = (root: unknown) => readonly unknown[];

export type Step = { readonly key: string | number } | { readonly key: undefined };

const STEP =
  /\.(?<name>[\p{L}_][\p{L}\p{N}_-]*)|\[(?:'(?<single>[^'\\]*)'|"(?<double>[^"\\]*)"|(?<index>0|[1-9]\d{0,5})|(?<all>\*))\]/uy;

/** Maximum number of values that a path may yield. Paths to credentials, ids and timestamps of real senders yield far fewer. */
const MAX_VALUES = 1_000;

/**
 * Parses a path that is evaluated on an unverified body.
 *
 * Supports a subset of RFC 9535: the root, member names (`.name`, `['any name']`), indexes from 0, and `[*]`. Evaluating such a
 * path visits each value at most once, so an untrusted body cannot make it expensive.
 */
export function parseBodyPath(text: string): Result<readonly Step[], string> {
  if (!text.startsWith("$")) return err("must begin with $");
  const steps: Step[] = [];
  for (let end = 1; end < text.length; ) {
    STEP.lastIndex = end;
    const groups = STEP.exec(text)?.groups;
    if (groups === undefined) {
      return err(
        `is invalid at ${JSON.stringify(text.slice(end))}: only .name, ['name'], [0] and [*] are allowed`,
      );
    }
    const name = groups.name ?? groups.single ?? groups.double;
    if (groups.all !== undefined) steps.push({ key: undefined });
    else steps.push({ key: name ?? Number(groups.index) });
    end = STEP.lastIndex;
  }
  return ok(steps);
}

/** Compiles a path into a function that reads its values. Accepts the path syntax of `parseBodyPath`. */
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
