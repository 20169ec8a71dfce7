/** Parses event definitions from the editor. Returns `undefined` if the text is not a JSON array. The API validates the definitions. */
export function parseDefinitions(text: string): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}
