/**
 * JSON text in which the order of an object's members says nothing, as it says nothing in a schema: members sorted by
 * name (UTF-16 code units, as RFC 8785 does). A database that stores documents in its own order gives the same text.
 *
 * @throws RangeError when the value is nested too deeply.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members: string[] = [];
  for (const [name, member] of Object.entries(value).sort(byName)) {
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${canonicalJson(member)}`);
  }
  return `{${members.join(",")}}`;
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);
