import { err, type Result } from "../../lib/result.ts";
import { buildTargets } from "../../normalize/body/json-scan.ts";
import type { JsonText } from "../../normalize/body/payload-slice.ts";
import type { Fault } from "../../normalize/fault.ts";
import type { CloudEvent, EventData } from "../../normalize/item.ts";
import { createCloudEvent, invalid } from "./attributes.ts";

const DATA = buildTargets([["data"]]);
/** Base64 of RFC 4648 section 4, with padding. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const MAX_INTEGER = 2_147_483_647;
const MIN_INTEGER = -2_147_483_648;

/** Parses one event in the JSON event format (CloudEvents 1.0.2, JSON format, sections 2 and 3). */
export function readJsonEvent(json: JsonText): Result<CloudEvent, Fault> {
  const { value } = json;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return invalid(undefined, "an event must be a JSON object");
  }
  const members = value as Readonly<Record<string, unknown>>;
  const pairs: [string, string][] = [];
  for (const [name, member] of Object.entries(members)) {
    if (name === "data" || name === "data_base64" || member === null) continue;
    const text = formatAttribute(member);
    if (text === undefined) return invalid(name, "must be a string, a boolean or a 32-bit integer");
    if (typeof member !== "string" && KNOWN_STRINGS.has(name)) return invalid(name, "must be a string");
    pairs.push([name, text]);
  }
  const data = parseData(json, members);
  return data.ok ? createCloudEvent(pairs, data.value) : err(data.error);
}

/** Attributes that the CloudEvents specification defines. Their JSON values must be strings. */
const KNOWN_STRINGS: ReadonlySet<string> = new Set([
  "specversion",
  "id",
  "source",
  "type",
  "time",
  "subject",
  "dataschema",
  "datacontenttype",
]);

function formatAttribute(member: unknown): string | undefined {
  if (typeof member === "string") return member;
  if (typeof member === "boolean") return String(member);
  if (typeof member !== "number" || !Number.isInteger(member)) return undefined;
  return member >= MIN_INTEGER && member <= MAX_INTEGER ? String(member) : undefined;
}

function parseData(json: JsonText, members: Readonly<Record<string, unknown>>): Result<EventData, Fault> {
  const hasData = Object.hasOwn(members, "data");
  const base64 = members.data_base64;
  if (base64 !== undefined && base64 !== null) {
    if (hasData) return invalid("data_base64", "must not be combined with data");
    if (typeof base64 !== "string" || !BASE64.test(base64)) return invalid("data_base64", "must be base64");
    return { ok: true, value: { kind: "bytes", base64 } };
  }
  if (!hasData) return { ok: true, value: { kind: "none" } };
  const { data, datacontenttype } = members;
  if (isJsonContent(typeof datacontenttype === "string" ? datacontenttype : undefined)) {
    const text = json.find(DATA, data);
    return text === undefined
      ? invalid("data", "is missing")
      : { ok: true, value: { kind: "json", json: text } };
  }
  if (typeof data !== "string")
    return invalid("data", "must be a string, because datacontenttype is not JSON");
  return { ok: true, value: { kind: "text", text: data } };
}

/** Returns whether a media type is JSON. A missing media type also means JSON (CloudEvents JSON format, section 3.1.1). */
function isJsonContent(dataContentType: string | undefined): boolean {
  if (dataContentType === undefined) return true;
  const subtype = dataContentType.split(";", 1)[0]?.trim().toLowerCase().split("/")[1] ?? "";
  return subtype === "json" || subtype.endsWith("+json");
}
