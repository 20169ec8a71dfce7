import type { z } from "zod";
import type { Finding } from "../lib/errors.ts";
import { wrongFields } from "../lib/issue-message.ts";

/** The issues of zod as findings, one per field, each under its path: `channels[0].config.dedupe.windowSeconds`. */
export function findingsOf(error: z.ZodError, base: readonly PropertyKey[] = []): readonly Finding[] {
  return wrongFields(error).map(({ path, message }) => ({ path: formatPath([...base, ...path]), message }));
}

/** `["channels", 0, "config"]` → `channels[0].config`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? String(step) : `.${String(step)}`;
  }
  return text;
}

/** A finding of a part, told from the whole: `events[3].idPath` below `channels[0]`. */
export const findingUnder = (base: string, finding: Finding): Finding => ({
  path: finding.path === "" ? base : `${base}.${finding.path}`,
  message: finding.message,
});
