import type { z } from "zod";

/** An invalid setting: its path, and the reason why it is invalid. */
export interface WrongSetting {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Called to report an invalid setting. */
export type NoteWrong = (path: PropertyKey | readonly PropertyKey[], message: string) => void;

/** Creates a zod check for combinations of settings. Each setting has already been validated on its own. */
export const checkSettings =
  <T>(check: (settings: T, note: NoteWrong) => void) =>
  ({ value, issues }: z.core.ParsePayload<T>): void =>
    check(value, (path, message) => {
      issues.push({ code: "custom", path: [path].flat(), message, input: value });
    });
