import type { ApiEvent } from "../client/entities.ts";
import { channelOf } from "../client/event-stream.ts";
import { escapeText } from "./escape.ts";
import type { Output } from "./output.ts";
import { fitTo } from "./width.ts";

/** Formats an event on one line of a terminal. Data that does not fit is cut off. */
export function formatEventLine(event: ApiEvent, { paint, cells }: Output): string {
  const { time = "", topic, type, id, data } = event;
  const clock = escapeText(time.slice(11, 23));
  const channel = escapeText(channelOf(topic));
  const name = escapeText(type);
  const shown = data === undefined ? "" : escapeText(typeof data === "string" ? data : JSON.stringify(data));
  const shownId = escapeText(id);
  const head = `${clock} ${channel}:${name} ${shownId} `;
  const room = Number.isFinite(cells) ? Math.max(20, cells - head.length) : 1_000;
  return `${paint("dim", clock)} ${channel}:${paint("cyan", name)} ${paint("dim", shownId)} ${fitTo(room, shown)}`;
}
