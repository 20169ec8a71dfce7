import { randomBytes } from "node:crypto";
import { encodeBase32 } from "../../lib/ids.ts";

const PREFIX = "lt_";
const TOKEN_BYTES = 25;
const FORM = /^lt_[0-9a-hjkmnp-tv-z]{40}$/;

/**
 * Creates a token that gives access to one live conversation: `lt_` and 40 characters that encode 200 random bits. The database stores only
 * its hash.
 */
export const createLiveToken = (): string => PREFIX + encodeBase32(randomBytes(TOKEN_BYTES));

/** Returns true if a text has the form of a live token. No other kind of token has this form. */
export const isLiveToken = (token: string): boolean => FORM.test(token);
