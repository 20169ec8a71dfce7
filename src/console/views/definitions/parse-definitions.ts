/** Parses event definitions from the editor. Returns `undefined` if the text is not a JSON array. The API validates the definitions. */
export function parseDefinitions(text: string): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Sets the schema of a definition in the text of the editor. Returns `undefined` if the text has no definition of this type. */
export function applySchema(text: string, type: string, schema: object | boolean): string | undefined {
  const isOfType = (one: unknown): one is object =>
    typeof one === "object" && one !== null && "type" in one && one.type === type;
  const definitions = parseDefinitions(text);
  if (!definitions?.some(isOfType)) return undefined;
  const changed = definitions.map((one) => (isOfType(one) ? { ...one, schema } : one));
  return JSON.stringify(changed, null, 2);
}
