import type { z } from "zod";

/** An invalid setting, with its path and the reason. */
export interface WrongSetting {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Reports an invalid setting. */
export type NoteWrong = (path: PropertyKey | readonly PropertyKey[], message: string) => void;

/** Creates a zod check for combinations of settings that are valid individually. */
export const checkSettings =
  <T>(check: (settings: T, note: NoteWrong) => void) =>
  ({ value, issues }: z.core.ParsePayload<T>): void =>
    check(value, (path, message) => {
      issues.push({ code: "custom", path: [path].flat(), message, input: value });
    });
