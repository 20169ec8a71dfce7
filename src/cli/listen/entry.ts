import { isJsonData } from "../../event/cloud-event.ts";
import type { DeliveredEvent } from "../../event/handler-request.ts";
import { buildTargets } from "../../normalize/body/json-scan.ts";
import { JsonText } from "../../normalize/body/payload-slice.ts";

/** An event read from the API, converted to the form that an event handler receives. */
export interface ListenedEvent extends DeliveredEvent {
  readonly id: string;
  readonly type: string;
  /** Whether the data contains line ends. The event stream normalizes line ends, so the exact data must be read separately. */
  readonly hasLineEnds: boolean;
}

const DATA = buildTargets([["data"]]);
/** Members of an event in the API that only locate the event in its stream. They are not CloudEvents attributes. */
const LOCATION_MEMBERS: ReadonlySet<string> = new Set(["topic", "entryId"]);

/** Parses an event from the API. JSON data remains exactly as received. */
export function readEntry(json: string): ListenedEvent {
  const event = JsonText.parse(json);
  const { data, ...members } = event.value as Readonly<Record<string, string>> & { readonly data?: unknown };
  const fields = Object.entries(members).flatMap(([name, value]) =>
    LOCATION_MEMBERS.has(name) ? [] : [name, value],
  );
  const text = textOfData(event, data, members.datacontenttype);
  return {
    topic: members.topic ?? "",
    entryId: members.entryId ?? "",
    id: members.id ?? "",
    type: members.type ?? "",
    fields: text === undefined ? fields : [...fields, "data", text],
    hasLineEnds: text !== undefined && typeof data !== "string" && /[\r\n]/.test(text),
  };
}

function textOfData(event: JsonText, data: unknown, type: string | undefined): string | undefined {
  if (data === undefined) return undefined;
  if (typeof data === "string" && !isJsonData(type)) return data;
  return event.find(DATA, data)?.text;
}
