import { isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";

const UTF8 = "utf-8";

/**
 * Returns the charset of an XML document (RFC 7303, section 3). A byte order mark takes precedence over the content type, and the content
 * type over the XML declaration. Servers often declare a wrong charset, so a charset that the bytes contradict is ignored if another one
 * fits.
 *
 * @param charset parameter of the content type, in lower case
 */
export function findXmlCharset(bytes: Buffer, charset: string | undefined): string | undefined {
  const start = bytes.toString("latin1", 0, 100);
  if (start.startsWith("\xEF\xBB\xBF")) return UTF8;
  if (start.startsWith("\xFF\xFE") || start.startsWith("<\0")) return "utf-16le";
  if (start.startsWith("\xFE\xFF") || start.startsWith("\0<")) return "utf-16be";
  const declared = /^\s*<\?xml[^>]*\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']/
    .exec(start)?.[1]
    ?.toLowerCase();
  const named = [charset, declared].filter((name) => name !== undefined);
  const isValidUtf8 = isUtf8(bytes);
  const fitting = named.find((name) => {
    const encoding = findEncoding(name);
    // In UTF-16, the start of the document would not be readable as ASCII.
    return encoding === UTF8 ? isValidUtf8 : encoding !== undefined && !encoding.startsWith("utf-16");
  });
  return fitting ?? (isValidUtf8 ? UTF8 : named[0]);
}

/** Returns the name of an encoding (WHATWG Encoding, section 4.2), or `undefined` if it is not supported. */
function findEncoding(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}
