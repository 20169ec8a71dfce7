import type { z } from "zod";

export interface WrongField {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

export type NoteWrong = (path: PropertyKey | readonly PropertyKey[], message: string) => void;

/** Creates a Zod check for rules that involve several fields. The check runs after each field has been validated on its own. */
export const checkFields =
  <T>(check: (config: T, note: NoteWrong) => void) =>
  ({ value, issues }: z.core.ParsePayload<T>): void =>
    check(value, (path, message) => {
      issues.push({ code: "custom", path: [path].flat(), message, input: value });
    });
