/**
 * Whether a value nests arrays and objects deeper than `limit` (`[[1]]` has depth 2). The recursion itself stops at the limit.
 *
 * @param textLength length of the value's JSON text, if known. Each level needs two brackets, so a short text needs no walk.
 *   Counting brackets in longer texts was measured and is not faster than the walk
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
  // for…in reads the keys from the object's shape; Object.values would allocate an array per object.
  for (const key in container) {
    const child: unknown = (container as Readonly<Record<string, unknown>>)[key];
    if (typeof child === "object" && child !== null && isDeeperThan(child, limit - 1)) return true;
  }
  return false;
}
