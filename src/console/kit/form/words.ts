/** `windowSeconds` → `Window seconds`; what is no name in camel case stays as it is. */
export function wordsOf(name: string): string {
  const spaced = name.replace(
    /([a-z\d])([A-Z])/g,
    (_, before: string, after: string) => `${before} ${after.toLowerCase()}`,
  );
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** `a.b[0]` as the API names fields in `details`. */
export const pathTo = (path: string, name: string | number): string =>
  typeof name === "number" ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
