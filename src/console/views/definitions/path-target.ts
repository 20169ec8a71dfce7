import { isRecord } from "../../kit/form/schema.ts";

/** Settings of a definition that are paths. */
export const PATH_FIELDS = [
  "typePath",
  "idPath",
  "payloadPath",
  "timePath",
  "subjectPath",
  "keyPath",
] as const;
export type PathField = (typeof PATH_FIELDS)[number];

/** The setting whose path a click on a field sets. */
export interface PathTarget {
  /** Index of the definition. */
  readonly index: number;
  readonly field: PathField;
}

/** Returns the definitions with a changed path. Adds a definition if there are none. */
export function setPath(
  events: readonly unknown[],
  { index, field }: PathTarget,
  path: string,
): readonly unknown[] {
  const at = Math.min(index, Math.max(0, events.length - 1));
  const definition = events[at];
  const changed = { ...(isRecord(definition) ? definition : {}), [field]: path };
  return events.length === 0 ? [changed] : events.with(at, changed);
}
