import type { z } from "zod";
import type { Finding } from "../lib/errors.ts";
import { wrongFields } from "../lib/issue-message.ts";

/** Converts the issues of a Zod error to findings, one per field. Each has a path such as `channels[0].config.dedupe.windowSeconds`. */
export function findingsOf(error: z.ZodError, base: readonly PropertyKey[] = []): readonly Finding[] {
  return wrongFields(error).map(({ path, message }) => ({ path: formatPath([...base, ...path]), message }));
}

/** Returns a path as text: `["channels", 0, "config"]` becomes `channels[0].config`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? String(step) : `.${String(step)}`;
  }
  return text;
}

/**
 * Returns the finding with a prefix before its path. With the prefix `channels[0]`, the path `events[3].idPath` becomes
 * `channels[0].events[3].idPath`.
 */
export const findingUnder = (base: string, finding: Finding): Finding => ({
  path: finding.path === "" ? base : `${base}.${finding.path}`,
  message: finding.message,
});
