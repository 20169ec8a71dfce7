/**
 * True where a value nests arrays and objects deeper than `limit` (`[[1]]` is 2 deep). Recurses no deeper than the limit,
 * whatever the value's own depth.
 *
 * `textLength` spares the walk where the value was written as JSON: each level takes a bracket at either side. Counting
 * brackets in longer texts was measured and is no faster than this walk.
 */
export function exceedsDepth(value: unknown, limit: number, textLength = Number.POSITIVE_INFINITY): boolean {
  if (textLength <= 2 * limit || typeof value !== "object" || value === null) return false;
  return isDeeperThan(value, limit);
}

function isDeeperThan(container: object, limit: number): boolean {
  if (limit === 0) return true;
  if (Array.isArray(container)) {
    for (const child of container) {
      if (typeof child === "object" && child !== null && isDeeperThan(child, limit - 1)) return true;
    }
    return false;
  }
  // for…in reads the keys from the object's shape where Object.values would make an array of each object.
  for (const key in container) {
    const child: unknown = (container as Readonly<Record<string, unknown>>)[key];
    if (typeof child === "object" && child !== null && isDeeperThan(child, limit - 1)) return true;
  }
  return false;
}
