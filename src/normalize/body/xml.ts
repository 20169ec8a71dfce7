import type * as FastXmlParser from "fast-xml-parser";
import { loadLibrary } from "../../lib/load-library.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { type Fault, invalidBody, shorten } from "../fault.ts";

const loadXmlLibrary = () => loadLibrary<typeof FastXmlParser>("fast-xml-parser");

/** Maximum nesting depth of XML elements. Exceeds the highest depth limit that a channel can have. */
const MAX_NESTED_TAGS = 1024;

/**
 * Maximum length of an XML document, in characters. The parser takes about 0.3 µs per character and cannot be interrupted, so a
 * longer document would block the event loop for seconds.
 */
const MAX_CHARACTERS = 1024 * 1024;

/**
 * Maximum number of start and end tags in an XML document. The parser takes up to 5 µs per element, and up to 2 µs per attribute.
 */
const MAX_TAGS = 100_000;
const MAX_ATTRIBUTES = 50_000;

/**
 * Maximum length of a validator error message, in characters. Longer messages are truncated, because they list all open elements.
 */
const MAX_MESSAGE_CHARS = 200;

/** Matches characters that XML forbids (production Char, XML 1.0 section 2.2), because the validator accepts them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 forbids control characters
const FORBIDDEN_CHARACTER = /[\0-\x08\x0B\x0C\x0E-\x1F\uFFFE\uFFFF]/;

const PREDEFINED: ReadonlyMap<string, string> = new Map([
  ["lt", "<"],
  ["gt", ">"],
  ["amp", "&"],
  ["quot", '"'],
  ["apos", "'"],
]);

/**
 * Converts an XML document to a JSON value:
 * - The document becomes an object with one member, named after the root element.
 * - An element with only text becomes a string. An empty element becomes "".
 * - Any other element becomes an object. Attributes become members `@name`. Child elements become members with their names,
 *   including prefixes. Text between child elements is joined in `#text`. Elements with the same name become an array.
 * - All scalars are strings. Text is trimmed; CDATA sections are unchanged.
 * - Comments, processing instructions and the XML declaration are dropped.
 *
 * Rejects document type declarations. Only the five predefined entities and character references can therefore occur. The
 * validator runs before the parser, because the parser accepts malformed documents.
 */
export function parseXml(text: string): Result<unknown, Fault> {
  if (text.length > MAX_CHARACTERS) {
    return err(
      invalidBody(`the XML document has ${text.length} characters; the maximum is ${MAX_CHARACTERS}`),
    );
  }
  const excess = findExcess(text);
  if (excess !== undefined) return err(invalidBody(excess));
  if (FORBIDDEN_CHARACTER.test(text))
    return err(invalidBody("the document contains a character that XML does not allow"));
  const verdict = loadXmlLibrary().XMLValidator.validate(text);
  if (verdict !== true) {
    const { col, line, msg } = verdict.err;
    return err(invalidBody(`${shorten(msg, MAX_MESSAGE_CHARS)} (line ${line}, column ${col})`));
  }
  try {
    const value: unknown = createParser().parse(text);
    return hasOneRoot(value)
      ? ok(value)
      : err(invalidBody("the document must have exactly one root element"));
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return err(
      detail.startsWith("Maximum nested tags") ? { reason: "too_deep", detail } : invalidBody(detail),
    );
  }
}

/**
 * Returns an error message if an XML document has too many tags or attributes. Runs before parsing, so matches inside text count
 * too.
 */
function findExcess(text: string): string | undefined {
  if (exceedsCount(text, /<[^!?]/g, MAX_TAGS)) return `the XML document has more than ${MAX_TAGS} tags`;
  return exceedsCount(text, /=\s*["']/g, MAX_ATTRIBUTES)
    ? `the XML document has more than ${MAX_ATTRIBUTES} attributes`
    : undefined;
}

function exceedsCount(text: string, pattern: RegExp, most: number): boolean {
  // Each match takes at least two characters, so a text of this length cannot exceed the limit.
  if (text.length <= 2 * most) return false;
  let count = 0;
  while (count <= most && pattern.test(text)) count++;
  return count > most;
}

function createParser(): FastXmlParser.XMLParser {
  const { XMLParser } = loadXmlLibrary();
  return new XMLParser({
    ignoreAttributes: false,
    attributeNamePrefix: "@",
    parseTagValue: false,
    ignoreDeclaration: true,
    ignorePiTags: true,
    maxNestedTags: MAX_NESTED_TAGS,
    // Disable the option, because building the path of every element as a string is slow.
    jPath: false,
    onDangerousProperty: (name) => name,
    entityDecoder: {
      decode: decodeReferences,
      reset: () => {},
      setXmlVersion: () => {},
      setExternalEntities: () => {},
      // Called by the parser for every document type declaration, even for one without entities.
      addInputEntities: () => {
        throw new Error("document type declarations are not accepted");
      },
    },
  });
}

/** Returns whether a document has exactly one root element. The validator misses content after a self-closing root element. */
function hasOneRoot(value: unknown): boolean {
  const roots = typeof value === "object" && value !== null ? Object.values(value) : [];
  return roots.length === 1 && !Array.isArray(roots[0]);
}

function decodeReferences(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([^;&\s]*));/giu, (_, hex, decimal, name) => {
    if (name === undefined)
      return fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
    const char = PREDEFINED.get(name);
    if (char === undefined) throw new Error(`the entity &${name}; is not declared`);
    return char;
  });
}

/**
 * Converts a character reference to text.
 *
 * @throws Error for a code point that XML forbids (production Char, XML 1.0, section 2.2)
 */
function fromCodePoint(code: number): string {
  const isChar =
    code === 9 ||
    code === 10 ||
    code === 13 ||
    (code >= 0x20 && code <= 0xd7ff) ||
    (code >= 0xe000 && code <= 0xfffd) ||
    (code >= 0x10000 && code <= 0x10ffff);
  if (!isChar) throw new Error(`the character reference to ${code} is not allowed in XML`);
  return String.fromCodePoint(code);
}
