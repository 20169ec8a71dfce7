import type { z } from "zod";
import type { Finding } from "./errors.ts";
import { wrongFields } from "./issue-message.ts";

/**
 * Converts a Zod error to a list of errors with one entry per invalid field, such as `channels[0].config.dedupe.windowSeconds`.
 * @param input the value that was parsed
 */
export function findingsOf(
  error: z.ZodError,
  input: unknown,
  base: readonly PropertyKey[] = [],
): readonly Finding[] {
  return wrongFields(error, input).map(({ path, message }) => ({
    path: formatPath([...base, ...path]),
    message,
  }));
}

/** Formats a path: `["channels", 0, "config"]` becomes `channels[0].config`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? String(step) : `.${String(step)}`;
  }
  return text;
}

/** Adds a prefix to the path of a validation error: `events[3].idPath` becomes `channels[0].events[3].idPath`. */
export const findingUnder = (base: string, finding: Finding): Finding => ({
  path: finding.path === "" ? base : `${base}.${finding.path}`,
  message: finding.message,
});
