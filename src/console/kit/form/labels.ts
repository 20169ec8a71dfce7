/** Formats a name in camel case as a label: `windowSeconds` gives `Window seconds`. */
export function formatLabel(name: string): string {
  const spaced = name.replace(
    /([a-z\d])([A-Z])/g,
    (_, before: string, after: string) => `${before} ${after.toLowerCase()}`,
  );
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** Appends a name or an index to a path such as `a.b[0]`. Error responses of the API use the same format. */
export const appendPath = (path: string, name: string | number): string =>
  typeof name === "number" ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
