import type { OutboundRequest } from "../../net/outbound.ts";
import type { SseSettings } from "./settings.ts";

/** Some servers refuse whoever does not say who calls. */
const USER_AGENT = "inlet";

/** The request for the stream, without credentials. @param told the last event id; empty for none */
export function requestOf(settings: SseSettings, told: string): OutboundRequest {
  const { body, method, query, resume } = settings;
  const url = new URL(settings.url);
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value);
  const headers: Record<string, string> = { "user-agent": USER_AGENT, "cache-control": "no-store" };
  if (body !== undefined) headers["content-type"] = "application/json";
  for (const [name, value] of Object.entries(settings.headers)) headers[name.toLowerCase()] = value;
  headers.accept = "text/event-stream";
  if (told !== "" && resume.mode === "lastEventId") headers["last-event-id"] = toByteString(told);
  if (told !== "" && resume.mode === "query" && resume.param) url.searchParams.append(resume.param, told);
  return { method, url: url.href, headers, ...(body !== undefined && { body }) };
}

/** True for an id that a header may hold (RFC 9110, section 5.5). */
export const isSendable = (id: string): boolean => /^[\t\x20-\x7e\u0080-\uffff]*$/.test(id);

/** Ids are sent in UTF-8 (WHATWG HTML, "server-sent events"); to HTTP each of its bytes is a character. */
const toByteString = (text: string): string => Buffer.from(text).toString("latin1");
