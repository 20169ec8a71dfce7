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

/** What a `$ref` of the form `#` or `#/…` leads to from the root, by own properties only; else undefined. */
export function resolvePointer(root: unknown, ref: string): unknown {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let at = root;
  for (const part of ref.slice(2).split("/")) {
    const name = decodePart(part);
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = Object.getOwnPropertyDescriptor(at, name)?.value;
  }
  return at;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return part;
  }
}
