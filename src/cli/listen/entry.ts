import { isJsonData } from "../../event/cloud-event.ts";
import type { DeliveredEvent } from "../../event/handler-request.ts";
import { buildTargets } from "../../normalize/body/json-scan.ts";
import { JsonText } from "../../normalize/body/payload-slice.ts";

/** An event of the API as the entry that it stands for. */
export interface ListenedEvent extends DeliveredEvent {
  readonly id: string;
  readonly type: string;
  /** True where its data holds line ends, which an event stream makes anew. */
  readonly hasLineEnds: boolean;
}

const DATA = buildTargets([["data"]]);
/** Of where it stands. */
const OF_PLACE: ReadonlySet<string> = new Set(["topic", "entryId"]);

/** Reads an event as the API answers it. Its JSON data is the very text that it was received in. */
export function readEntry(json: string): ListenedEvent {
  const event = JsonText.parse(json);
  const { data, ...members } = event.value as Readonly<Record<string, string>> & { readonly data?: unknown };
  const fields = Object.entries(members).flatMap(([name, value]) =>
    OF_PLACE.has(name) ? [] : [name, value],
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
