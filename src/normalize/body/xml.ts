import { XMLParser, XMLValidator } from "fast-xml-parser";
import { err, ok, type Result } from "../../lib/result.ts";
import { type Fault, invalidBody, shorten } from "../fault.ts";

/** Deeper documents are refused by the parser; no channel's depth limit reaches as far. */
const MAX_NESTED_TAGS = 1024;

/**
 * The parser costs about 0.3 µs a character and cannot be interrupted: a longer document would keep all other senders
 * waiting for seconds.
 */
const MAX_CHARACTERS = 1024 * 1024;

/** Parsing an element takes up to 5 µs, an attribute 2; a start and an end count as two tags. */
const MAX_TAGS = 100_000;
const MAX_ATTRIBUTES = 50_000;

/** Of what the validator says: it names all elements that are open. */
const MAX_MESSAGE_CHARS = 200;

/** XML 1.0 section 2.2: all but production Char. The validator does not look. */
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
 * An XML document as a JSON value:
 * - the document is an object with one member, named after the root element;
 * - an element with text alone is a string, an empty one "";
 * - any other element is an object: attributes under `@name`, child elements under their names (prefixes kept), an array
 *   where a name repeats, text between them joined under `#text`;
 * - all scalars are strings; text is trimmed, CDATA sections are taken as they are; comments, processing instructions
 *   and the declaration are left out.
 *
 * Documents with a document type declaration are refused, so that no entity but the five predefined ones and character
 * references can occur. The validator goes first: the parser reads broken documents without complaint.
 */
export function parseXml(text: string): Result<unknown, Fault> {
  if (text.length > MAX_CHARACTERS) {
    return err(invalidBody(`an XML document may hold ${MAX_CHARACTERS} characters, not ${text.length}`));
  }
  const excess = findExcess(text);
  if (excess !== undefined) return err(invalidBody(excess));
  if (FORBIDDEN_CHARACTER.test(text))
    return err(invalidBody("the document holds a character that XML does not allow"));
  const verdict = XMLValidator.validate(text);
  if (verdict !== true) {
    const { col, line, msg } = verdict.err;
    return err(invalidBody(`${shorten(msg, MAX_MESSAGE_CHARS)} (line ${line}, column ${col})`));
  }
  try {
    const value: unknown = createParser().parse(text);
    return hasOneRoot(value) ? ok(value) : err(invalidBody("a document has one root element"));
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return err(
      detail.startsWith("Maximum nested tags") ? { reason: "too_deep", detail } : invalidBody(detail),
    );
  }
}

/** Told before anything is parsed, by how both begin, wherever else that stands. */
function findExcess(text: string): string | undefined {
  if (exceedsCount(text, /<[^!?]/g, MAX_TAGS)) return `an XML document may hold ${MAX_TAGS} tags`;
  return exceedsCount(text, /=\s*["']/g, MAX_ATTRIBUTES)
    ? `an XML document may hold ${MAX_ATTRIBUTES} attributes`
    : undefined;
}

function exceedsCount(text: string, pattern: RegExp, most: number): boolean {
  // Each takes two characters at least.
  if (text.length <= 2 * most) return false;
  let count = 0;
  while (count <= most && pattern.test(text)) count++;
  return count > most;
}

function createParser(): XMLParser {
  return new XMLParser({
    ignoreAttributes: false,
    attributeNamePrefix: "@",
    parseTagValue: false,
    ignoreDeclaration: true,
    ignorePiTags: true,
    maxNestedTags: MAX_NESTED_TAGS,
    // Spares the parser the path of every element as a string.
    jPath: false,
    onDangerousProperty: (name) => name,
    entityDecoder: {
      decode: decodeReferences,
      reset: () => {},
      setXmlVersion: () => {},
      setExternalEntities: () => {},
      // Called for each document type declaration, with entities or without.
      addInputEntities: () => {
        throw new Error("document type declarations are not accepted");
      },
    },
  });
}

/** The validator overlooks what follows a root element that closes itself. */
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

/** XML 1.0 section 2.2, production Char. */
function fromCodePoint(code: number): string {
  const isChar =
    code === 9 ||
    code === 10 ||
    code === 13 ||
    (code >= 0x20 && code <= 0xd7ff) ||
    (code >= 0xe000 && code <= 0xfffd) ||
    (code >= 0x10000 && code <= 0x10ffff);
  if (!isChar) throw new Error(`the reference to ${code} names no character of XML`);
  return String.fromCodePoint(code);
}
