const CHARSET = /;\s*charset\s*=\s*(?:"([^"]*)"|([^;\s"]+))/i;

/** Returns the `charset` parameter of a content type in lower case. */
export function readCharset(contentType: string): string | undefined {
  const match = CHARSET.exec(contentType);
  return (match?.[1] ?? match?.[2])?.trim().toLowerCase();
}

/** Returns a content type with another `charset` parameter. */
export const withCharset = (contentType: string, charset: string): string =>
  CHARSET.test(contentType)
    ? contentType.replace(CHARSET, `; charset=${charset}`)
    : `${contentType}; charset=${charset}`;

const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+*-]+\s*(?:;.*)?$/;

/** Returns whether a text is a media type, such as `text/plain; charset=utf-8`. */
export const isMediaType = (text: string): boolean => MEDIA_TYPE.test(text);

/** Returns whether `label` names a character encoding (WHATWG Encoding, section 4.2) that Inlet can decode. */
export function isCharset(label: string): boolean {
  try {
    new TextDecoder(label);
    return true;
  } catch {
    return false;
  }
}

/** Elements of a list, separated by commas outside of quotes. */
const LIST_ELEMENT = /(?:[^,"]|"[^"]*"?)+/g;

/**
 * Returns the content type of a request whose header may be repeated, or joined by commas. Equal media types count as one, and an element
 * that is no media type as a parameter of the one before it. If the media types or charsets differ, the whole list is returned.
 */
export function mergeContentTypes(header: string | readonly string[] | undefined): string | undefined {
  const text = typeof header === "object" ? header.join(", ") : header;
  if (text === undefined || !text.includes(",")) return text;
  const types: string[] = [];
  for (const element of text.match(LIST_ELEMENT) ?? []) {
    const trimmed = element.trim();
    if (types.length > 0 && !/^[^\s;=]+\//.test(trimmed)) types.push(`${types.pop()}; ${trimmed}`);
    else types.push(trimmed);
  }
  const names = new Set(types.map((type) => type.split(";", 1)[0]?.trim().toLowerCase()));
  const charsets = new Set(types.flatMap((type) => readCharset(type) ?? []));
  if (names.size > 1 || charsets.size > 1) return text;
  return types.reduce((longest, type) => (type.length > longest.length ? type : longest), "");
}

/** Returns whether a content type is a list of different ones, as `mergeContentTypes` returns it. */
export const isTypeList = (contentType: string): boolean =>
  contentType.includes(",") && (contentType.match(LIST_ELEMENT)?.length ?? 0) > 1;
