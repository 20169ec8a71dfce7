/** Parses typed definitions. Returns `undefined` if they are not a JSON array. The API validates their content. */
export function parseDefinitions(text: string): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}
