/** Formats a camel-case name as a label: `windowSeconds` → `Window seconds`. */
export function formatLabel(name: string): string {
  const spaced = name.replace(
    /([a-z\d])([A-Z])/g,
    (_, before: string, after: string) => `${before} ${after.toLowerCase()}`,
  );
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** Appends a name or index to a path, in the format of the API's `details`: `a.b[0]`. */
export const appendPath = (path: string, name: string | number): string =>
  typeof name === "number" ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
