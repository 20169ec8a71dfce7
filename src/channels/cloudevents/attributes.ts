import { isAttributeText } from "../../event/cloud-event.ts";
import { isMediaType } from "../../event/content-type.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import type { Fault } from "../../normalize/fault.ts";
import type { CloudEvent, EventData } from "../../normalize/item.ts";

const MAX_ATTRIBUTES = 128;
const MAX_NAME_CHARS = 128;
/** Maximum total length of an event's attributes, in characters. The specification requires support for events of 64 KiB (section 5). */
const MAX_ATTRIBUTES_CHARS = 65_536;

/** Valid attribute name (CloudEvents section 3.1, naming conventions). */
const NAME = /^[a-z0-9]+$/;
/** Matches the characters that RFC 3986 allows in a URI reference. Two hexadecimal digits must follow each percent sign. */
const URI_REFERENCE =
  /^(?:[\w\-.~:/?[\]@!$&'()*+,;=]|%[\dA-Fa-f]{2})*(?:#(?:[\w\-.~:/?@!$&'()*+,;=]|%[\dA-Fa-f]{2})*)?$/;
const URI_SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/;
/** Date and time in the format of RFC 3339, section 5.6. */
const TIMESTAMP =
  /^(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

type Check = (value: string) => string | undefined;

const nonEmpty: Check = (value) => (value === "" ? "must not be empty" : undefined);

const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ["specversion", (value) => (value === "1.0" ? undefined : "must be 1.0")],
  ["id", nonEmpty],
  ["type", nonEmpty],
  ["subject", nonEmpty],
  [
    "source",
    (value) => nonEmpty(value) ?? (URI_REFERENCE.test(value) ? undefined : "must be a URI-reference"),
  ],
  [
    "dataschema",
    (value) => (URI_SCHEME.test(value) && URI_REFERENCE.test(value) ? undefined : "must be an absolute URI"),
  ],
  ["datacontenttype", (value) => (isMediaType(value) ? undefined : "must be a media type")],
  ["time", (value) => (isTimestamp(value) ? undefined : "must be an RFC 3339 time")],
]);
export const REQUIRED = ["specversion", "id", "source", "type"] as const;

/**
 * Creates a CloudEvent from its data and its attributes. Returns an error that names the first invalid attribute, instead of repairing its
 * value.
 */
export function createCloudEvent(
  pairs: Iterable<readonly [name: string, value: string]>,
  data: EventData,
): Result<CloudEvent, Fault> {
  const attributes = new Map<string, string>();
  let chars = 0;
  for (const [name, value] of pairs) {
    const wrong = checkName(name) ?? checkValue(name, value);
    if (wrong !== undefined) return invalid(name, wrong);
    if (attributes.has(name)) return invalid(name, "must not appear twice");
    chars += name.length + value.length;
    if (attributes.size === MAX_ATTRIBUTES || chars > MAX_ATTRIBUTES_CHARS) {
      return invalid(
        name,
        `exceeds the limit of ${MAX_ATTRIBUTES} attributes or ${MAX_ATTRIBUTES_CHARS} characters`,
      );
    }
    attributes.set(name, value);
  }
  const [, id, source, type] = REQUIRED.map((name) => attributes.get(name));
  if (id === undefined || source === undefined || type === undefined || !attributes.has("specversion")) {
    return invalid(REQUIRED.find((name) => !attributes.has(name)) ?? "id", "is missing");
  }
  for (const name of REQUIRED) attributes.delete(name);
  return ok({ id, source, type, attributes, data });
}

/** Returns an error about one attribute of an event. If `attribute` is `undefined`, the error is about the whole event. */
export const invalid = (attribute: string | undefined, problem: string): Result<never, Fault> =>
  err({
    reason: "invalid_cloudevent",
    ...(attribute === undefined ? {} : { path: attribute.slice(0, MAX_NAME_CHARS) }),
    detail: attribute === undefined ? problem : `${attribute.slice(0, MAX_NAME_CHARS)} ${problem}`,
  });

function checkName(name: string): string | undefined {
  if (name.length > MAX_NAME_CHARS) return `is too long: a name has at most ${MAX_NAME_CHARS} characters`;
  if (!NAME.test(name)) return "is not an attribute name: use only a-z and 0-9";
  return name === "data" ? "is reserved" : undefined;
}

function checkValue(name: string, value: string): string | undefined {
  if (!isAttributeText(value)) return "must not contain control characters, lone surrogates or noncharacters";
  return CHECKS.get(name)?.(value);
}

function isTimestamp(text: string): boolean {
  const match = TIMESTAMP.exec(text);
  if (match === null) return false;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = month === 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return month >= 1 && month <= 12 && day >= 1 && day <= days;
}
