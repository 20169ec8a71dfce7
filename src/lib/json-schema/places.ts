/** Where in a schema something stands: the JSON Pointer of the first place, depth first, that `matches`. */
export function findPlace(
  root: unknown,
  matches: (key: string, value: unknown, parentKey: string) => boolean,
): string | undefined {
  function search(node: unknown, path: string, nodeKey: string): string | undefined {
    if (typeof node !== "object" || node === null) return undefined;
    for (const [key, value] of Object.entries(node)) {
      const here = `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      if (matches(key, value, nodeKey)) return here;
      const below = search(value, here, key);
      if (below !== undefined) return below;
    }
    return undefined;
  }
  return search(root, "", "");
}
