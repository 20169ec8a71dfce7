import { z } from "zod";
import { FRAMING_HEADERS } from "../../lib/framing-headers.ts";
import { HARMLESS_HEADERS, isCallable } from "../redirects.ts";

const MAX_SECRET_CHARS = 8_192;

/** Syntax of a token in HTTP (RFC 9110, section 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Text that an HTTP header transports unchanged: visible ASCII characters, with spaces only between them. */
const HEADER_TEXT = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;
export const NO_HEADER_TEXT = "must consist of visible ASCII characters, as required in headers";
/** Secret that may be empty, such as the password of APIs that read the key from the user name. */
export const emptySecretText = z.string().max(MAX_SECRET_CHARS).meta({ writeOnly: true });
export const secretText = z.string().min(1).max(MAX_SECRET_CHARS).meta({ writeOnly: true });

export const secretHeaderText = secretText.regex(HEADER_TEXT, NO_HEADER_TEXT);

/**
 * Name of a secret header, in lower case. Excludes the headers that redirects forward to other origins, because that would reveal
 * the secret.
 */
export const headerName = z
  .string()
  .max(128)
  .regex(TOKEN, "must be a valid header name")
  .toLowerCase()
  .refine(
    (name) =>
      !FRAMING_HEADERS.includes(name) && !HARMLESS_HEADERS.includes(name) && !name.startsWith("proxy-"),
    "is reserved and must not be set",
  );

export const queryName = z.string().min(1).max(128);

export const isHeaderText = (text: string): boolean => HEADER_TEXT.test(text);

export const httpUrl = z
  .string()
  .max(2_048)
  .refine((text) => {
    const url = URL.parse(text);
    return url !== null && isCallable(url) && url.hash === "";
  }, "must be an http or https URL without credentials or fragment");
