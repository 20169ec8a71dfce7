import type { OutboundResponse } from "../../../net/outbound.ts";
import { notBeforeOf } from "../../../net/retry-after.ts";
import type { SourceEnd } from "../../source.ts";
import type { PollingSettings } from "../settings/settings-shape.ts";

/**
 * Statuses by which a server refuses the request as it is: the next poll would send the same one, so that a person must change
 * the settings. Not among them are 403 and 404, which come while a server is deployed anew or before a right is granted, and cost
 * little to try again after a growing wait; nor 410 in the midst of paging, where only a page is gone.
 */
const LASTING_STATUSES: readonly number[] = [400, 401, 405, 406, 410, 411, 413, 414, 415, 422, 431, 501, 505];

/** Undefined where the answer is a page. */
export function refusalOf(
  response: OutboundResponse,
  settings: PollingSettings,
  nowMs: number,
): SourceEnd | undefined {
  const { status } = response;
  const { statuses } = settings.successOn;
  if (statuses === undefined ? status >= 200 && status < 300 : statuses.includes(status)) return undefined;
  const notBeforeMs = waitOf(response, settings, nowMs);
  const code = `http_${status}`;
  const message = `The server answers with the status ${status}`;
  if (LASTING_STATUSES.includes(status) && notBeforeMs === undefined) {
    const hint = status === 401 ? ": it wants credentials, and the channel has no connection" : "";
    return { kind: "broken", code, message: message + hint };
  }
  return { kind: "failed", code, message, ...(notBeforeMs !== undefined && { notBeforeMs }) };
}

/** Until when the server wants no more calls, in ms; undefined where it says nothing, or nobody is to listen. */
export function waitOf(
  response: Pick<OutboundResponse, "headers" | "status">,
  { retryAfter }: PollingSettings,
  nowMs: number,
): number | undefined {
  const notBeforeMs = retryAfter.honour ? notBeforeOf(response, nowMs) : undefined;
  return notBeforeMs === undefined ? undefined : Math.min(notBeforeMs, nowMs + retryAfter.maxSeconds * 1000);
}

/** True where the text that a path yields is the one that was asked for; numbers are equal as numbers. */
export function equalsSetting(found: unknown, equals: string | number | boolean): boolean {
  if (typeof equals === "number")
    return typeof found === "string" && found !== "" && Number(found) === equals;
  return String(found) === String(equals);
}
