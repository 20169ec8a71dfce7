/**
 * Returns whether the arrays and objects of a value are nested deeper than `limit`. For example, `[[1]]` has depth 2. Stops
 * descending at the limit.
 *
 * @param textLength length of the value's JSON text, if known. Each level needs two brackets, so the value is not traversed if
 *   the text is too short to exceed the limit
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
  // Use `for…in`, because `Object.values` would allocate an array for each object.
  for (const key in container) {
    const child: unknown = (container as Readonly<Record<string, unknown>>)[key];
    if (typeof child === "object" && child !== null && isDeeperThan(child, limit - 1)) return true;
  }
  return false;
}
