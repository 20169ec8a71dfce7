/**
 * Formats a value as JSON with sorted members (by UTF-16 code units, as in RFC 8785). Documents that differ only in member order
 * get the same text.
 *
 * @throws RangeError if the value is nested too deeply
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
