import { isAscii, isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";
import { err, ok, type Result } from "../lib/result.ts";

export interface DecodedText {
  /** Without its byte order mark: that belongs to the encoding, not to the text. */
  readonly text: string;
  /** True where the text in UTF-8 is the received bytes. */
  readonly isVerbatim: boolean;
}

const UTF8_NAMES = new Set(["utf-8", "utf8", "us-ascii", "ascii"]);

/** Decodes a body by the name of its charset (WHATWG Encoding labels; UTF-8 where none is given), strictly. */
export function decodeText(bytes: Buffer, charset = "utf-8"): Result<DecodedText, string> {
  if (!UTF8_NAMES.has(charset)) return decodeOther(bytes, charset);
  // Copying ASCII is the cheaper way to the same string.
  if (isAscii(bytes)) return ok({ text: bytes.toString("latin1"), isVerbatim: true });
  if (!isUtf8(bytes)) return err("the body is not valid UTF-8");
  const text = bytes.toString("utf8");
  return text.startsWith("\uFEFF")
    ? ok({ text: text.slice(1), isVerbatim: false })
    : ok({ text, isVerbatim: true });
}

function decodeOther(bytes: Buffer, charset: string): Result<DecodedText, string> {
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(charset, { fatal: true });
  } catch {
    return err(`the charset ${JSON.stringify(charset)} is not supported`);
  }
  try {
    return ok({ text: decoder.decode(bytes), isVerbatim: false });
  } catch {
    return err(`the body is not valid ${decoder.encoding}`);
  }
}
