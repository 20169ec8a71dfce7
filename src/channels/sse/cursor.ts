import { z } from "zod";
import { parseJson } from "../../event/parse-json.ts";
import { findingsOf } from "../../lib/findings.ts";
import { err, ok } from "../../lib/result.ts";
import { getStoredConfig } from "../../lib/stored-config.ts";
import type { CursorFormat } from "../source.ts";
import { MAX_ID_CHARS, sseConfigSchema } from "./config.ts";

/**
 * A position in an event stream: the `n`th event since the server sent `lastEventId`, counting the event with that id. An empty id means
 * that the server has sent none or has reset it, so the stream cannot be resumed.
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

/** @throws Error if `formatSseCursor` did not write this text */
export const parseSseCursor = (text: string): SseCursor => cursorSchema.parse(parseJson(text));

/** Converts cursors to their API form, for example `{"lastEventId": "42", "n": 1}`. `n` is optional in requests. */
export const sseCursorFormat: CursorFormat = {
  show: parseSseCursor,
  parse(value, config) {
    const parsed = cursorSchema.safeParse(value);
    if (!parsed.success) return err(findingsOf(parsed.error, value));
    const { mode } = getStoredConfig(sseConfigSchema, config).resume;
    const rejected = (message: string) => err([{ path: "lastEventId", message }]);
    if (mode === "none")
      return rejected(
        "has no effect, because the server does not receive the cursor if `resume.mode` is none",
      );
    const { lastEventId } = parsed.data;
    if (mode === "lastEventId" && !isSendable(lastEventId))
      return rejected("contains characters that are not allowed in a header");
    return ok(formatSseCursor(parsed.data));
  },
};

/** Returns whether an id is a valid header value (RFC 9110, section 5.5), so that it can be sent in `Last-Event-ID`. */
export const isSendable = (id: string): boolean => /^[\t\x20-\x7e\u0080-\uffff]*$/.test(id);
