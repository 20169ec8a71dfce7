import { XMLParser, XMLValidator } from "fast-xml-parser";
import { err, ok, type Result } from "../lib/result.ts";

/** Deeper documents are refused by the parser; no channel's depth limit reaches as far. */
const MAX_NESTED_TAGS = 1024;

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
export function parseXml(text: string): Result<unknown, string> {
  const verdict = XMLValidator.validate(text);
  if (verdict !== true)
    return err(`${verdict.err.msg} (line ${verdict.err.line}, column ${verdict.err.col})`);
  try {
    return ok(createParser().parse(text));
  } catch (error) {
    return err(error instanceof Error ? error.message : String(error));
  }
}

function createParser(): XMLParser {
  return new XMLParser({
    ignoreAttributes: false,
    attributeNamePrefix: "@",
    parseTagValue: false,
    ignoreDeclaration: true,
    ignorePiTags: true,
    maxNestedTags: MAX_NESTED_TAGS,
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
