/** Filter by a field of the event data. `order.total = 12` requires this value; `items.0.sku` requires only that the field exists. */
export type FieldFilter = (data: unknown) => boolean;

/** Parses the text of a filter. Returns `undefined` if the text names no field. */
export function parseFieldFilter(text: string): FieldFilter | undefined {
  const [, left = "", , right] = /^\s*([^=]*?)\s*(=\s*(.*?)\s*)?$/su.exec(text) ?? [];
  const names = left
    .replace(/^\$\.?/, "")
    .split(".")
    .filter((name) => name !== "");
  if (names.length === 0) return undefined;
  const wanted = right?.replace(/^"(.*)"$/s, "$1");
  return (data) => {
    let at = data;
    for (const name of names) {
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return false;
      at = (at as Readonly<Record<string, unknown>>)[name];
    }
    return wanted === undefined || (typeof at === "string" ? at : JSON.stringify(at)) === wanted;
  };
}
