import type { z } from "zod";
import type { Finding } from "../lib/errors.ts";
import { issueMessage } from "../lib/issue-message.ts";

/** The issues of zod as findings, one per field, each under its path: `channels[0].config.dedupe.windowSeconds`. */
export function findingsOf(error: z.ZodError, base: readonly PropertyKey[] = []): readonly Finding[] {
  return error.issues.flatMap((issue) => {
    const path = [...base, ...issue.path];
    if (issue.code !== "unrecognized_keys") return [{ path: formatPath(path), message: issueMessage(issue) }];
    return issue.keys.map((key) => ({ path: formatPath([...path, key]), message: "is not a known field" }));
  });
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
