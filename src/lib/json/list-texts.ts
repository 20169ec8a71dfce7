interface PlacedText {
  readonly path: readonly PropertyKey[];
  readonly text: string;
}

/** Lists all strings inside a value, with their paths. Names of members are not listed. */
export function listTexts(value: unknown, path: readonly PropertyKey[] = []): readonly PlacedText[] {
  if (typeof value === "string") return [{ path, text: value }];
  if (typeof value !== "object" || value === null) return [];
  const members: readonly (readonly [PropertyKey, unknown])[] = Array.isArray(value)
    ? value.map((member, index) => [index, member])
    : Object.entries(value);
  return members.flatMap(([name, member]) => listTexts(member, [...path, name]));
}
