import { z } from "zod";
import { FRAMING_HEADERS } from "../../lib/framing-headers.ts";
import { HARMLESS_HEADERS, isCallable } from "../redirects.ts";

const MAX_SECRET_CHARS = 8_192;

/** A token of RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A header holds these without being changed on its way: visible characters, with spaces between them. */
const HEADER_TEXT = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;
export const NO_HEADER_TEXT = "must be visible ASCII, as a header takes it";
/** A write-only text. */
export const secretText = z.string().min(1).max(MAX_SECRET_CHARS).meta({ writeOnly: true });

/** A write-only text that stands in a header. */
export const secretHeaderText = secretText.regex(HEADER_TEXT, NO_HEADER_TEXT);

/** The name of a header that settings may set, in lower case: none that redirects take along to other origins. */
export const headerName = z
  .string()
  .max(128)
  .regex(TOKEN, "must be the name of a header")
  .toLowerCase()
  .refine(
    (name) =>
      !FRAMING_HEADERS.includes(name) && !HARMLESS_HEADERS.includes(name) && !name.startsWith("proxy-"),
    "is not for settings to set",
  );

/** The name of a parameter of a query. */
export const queryName = z.string().min(1).max(128);

export const isHeaderText = (text: string): boolean => HEADER_TEXT.test(text);

/** An address of HTTP without credentials and fragment. */
export const httpUrl = z
  .string()
  .max(2_048)
  .refine((text) => {
    const url = URL.parse(text);
    return url !== null && isCallable(url) && url.hash === "";
  }, "must be an http or https URL without credentials and fragment");
