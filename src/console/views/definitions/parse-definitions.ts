/** Definitions as they were typed; undefined while they are no JSON array. What is wrong in them the API says. */
export function parseDefinitions(text: string): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}
