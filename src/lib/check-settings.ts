import type { z } from "zod";

/** A setting that makes no sense: where in the settings, and why. */
export interface WrongSetting {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Notes a setting that makes no sense. */
export type NoteWrong = (path: PropertyKey | readonly PropertyKey[], message: string) => void;

/** A check of settings that fit one by one, for zod: do they make sense together? */
export const checkSettings =
  <T>(check: (settings: T, note: NoteWrong) => void) =>
  ({ value, issues }: z.core.ParsePayload<T>): void =>
    check(value, (path, message) => {
      issues.push({ code: "custom", path: [path].flat(), message, input: value });
    });
