import { randomBytes } from "node:crypto";
import { encodeBase32 } from "../../lib/ids.ts";

const PREFIX = "lt_";
const TOKEN_BYTES = 25;
const FORM = /^lt_[0-9a-hjkmnp-tv-z]{40}$/;

/** A new live token: `lt_` + 40 characters of 200 random bits. What is kept of it is its hash. */
export const createLiveToken = (): string => PREFIX + encodeBase32(randomBytes(TOKEN_BYTES));

/** True for what has the form of a live token, and so is nothing else. */
export const isLiveToken = (token: string): boolean => FORM.test(token);
