import { z } from "zod";
import { findingsOf } from "../../http/findings.ts";
import { err, ok } from "../../lib/result.ts";
import type { CursorFormat } from "../source.ts";
import { getStoredSettings } from "../stored-settings.ts";
import { MAX_ID_CHARS, sseSettings } from "./settings.ts";

/**
 * Where a stream stands: after the `n`th event under `lastEventId`, of which the event that brought the id is the first. An
 * empty id: the server has given none, or has taken it back, so that it cannot be told where to go on.
 */
const cursorSchema = z.strictObject({
  lastEventId: z
    .string()
    .max(MAX_ID_CHARS)
    .regex(/^[^\r\n\0]*$/, "must not contain line breaks or NUL"),
  n: z.int().min(0).default(1),
});

export type SseCursor = z.output<typeof cursorSchema>;

export const formatSseCursor = ({ lastEventId, n }: SseCursor): string => JSON.stringify({ lastEventId, n });

/** @throws Error for what `writeCursor` has not written. */
export const parseSseCursor = (text: string): SseCursor => cursorSchema.parse(JSON.parse(text));

/** As `{"lastEventId": "42", "n": 1}`; a person may leave `n` out. */
export const sseCursorFormat: CursorFormat = {
  show: parseSseCursor,
  parse(value, settings) {
    const parsed = cursorSchema.safeParse(value);
    if (!parsed.success) return err(findingsOf(parsed.error));
    const { mode } = getStoredSettings(sseSettings, settings).resume;
    const rejected = (message: string) => err([{ path: "lastEventId", message }]);
    if (mode === "none") return rejected("is never told to the server where `resume.mode` is none");
    const { lastEventId } = parsed.data;
    if (mode === "lastEventId" && !isSendable(lastEventId)) return rejected("holds what no header can");
    return ok(formatSseCursor(parsed.data));
  },
};

/** True for an id that a header may hold (RFC 9110, section 5.5). */
export const isSendable = (id: string): boolean => /^[\t\x20-\x7e\u0080-\uffff]*$/.test(id);
