import { readEvent } from "./cloud-event.ts";
import type { Definition } from "./definition.ts";

/** An event as agents receive it (SEP-3415, event occurrence), without its cursor. */
export interface Occurrence {
  /** Id of the topic entry, which is unique within the event type. */
  readonly eventId: string;
  readonly name: string;
  /** Time of the event (RFC 3339). */
  readonly timestamp: string;
  /** Payload of the event. A payload that is not an object is the member `value` of one. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly _meta: Readonly<Record<string, unknown>>;
}

/** Key of the attributes of the CloudEvent in `_meta`. */
const CLOUD_EVENT = "io.inlet/cloudevent";

export interface ReadOccurrence {
  readonly occurrence: Occurrence;
  /** The CloudEvent, over which the subscription's filter is evaluated. */
  readonly event: Readonly<Record<string, unknown>>;
}

/** An entry of a topic, with the fields by name. */
interface NamedEntry {
  readonly entryId: string;
  readonly fields: Readonly<Record<string, string>>;
}

export function toOccurrence(name: string, { entryId, fields }: NamedEntry): ReadOccurrence {
  const { data: _, data_base64: base64, ...attributes } = fields;
  const event = base64 === undefined ? { ...attributes, data: parseData(fields) } : { ...fields };
  const data = base64 === undefined ? parseData(fields) : { data_base64: base64 };
  const timestamp = fields.time ?? new Date(Number(entryId.split("-")[0])).toISOString();
  return {
    occurrence: {
      eventId: entryId,
      name,
      timestamp,
      data: toObject(data),
      _meta: { [CLOUD_EVENT]: attributes },
    },
    event,
  };
}

/** Parses the data of an entry. Data that another Redis client wrote may not be JSON; it is returned as text. */
function parseData(fields: NamedEntry["fields"]): unknown {
  try {
    return readEvent<unknown>(Object.entries(fields).flat()).event.data;
  } catch {
    return fields.data;
  }
}

const toObject = (data: unknown): Readonly<Record<string, unknown>> =>
  isObject(data) ? data : { value: data ?? null };

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the JSON Schema of `Occurrence.data`. */
export function payloadSchemaOf({ schema }: Definition): Readonly<Record<string, unknown>> {
  if (!isObject(schema) || schema.type === undefined) return { type: "object" };
  if (schema.type === "object") return schema;
  return { type: "object", properties: { value: schema }, required: ["value"] };
}
