import { isSame } from "../form/same.ts";
import { isRecord } from "../form/schema.ts";

/** Returns the JSON Merge Patch (RFC 7396) that changes `before` to `after`. Lists are replaced as a whole, and null removes a value. */
export function mergePatch(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const patch: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, next] = [before[name], after[name]];
    if (isSame(old, next)) continue;
    if (next === undefined) {
      if (old !== null) patch[name] = null;
    } else patch[name] = isRecord(old) && isRecord(next) ? mergePatch(old, next) : next;
  }
  return patch;
}
