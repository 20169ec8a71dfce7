import { isAttributeText } from "../event/cloud-event.ts";
import type { EventAttribute } from "../event/event.ts";
import { formatTimestamp } from "../lib/clock.ts";
import { parseTimestamp } from "../lib/timestamps.ts";
import type { AttributePaths, RulePath } from "./compile.ts";
import { MAX_ID_LENGTH } from "./event-id.ts";
import type { ItemReader } from "./item-reader.ts";

/** Attributes that a definition reads from the item. */
export interface OwnAttributes {
  readonly time: string | undefined;
  readonly subject: string | undefined;
  readonly key: string | undefined;
  /** Attributes whose path yields no usable value. */
  readonly unset: readonly EventAttribute[];
}

/** @throws PathBudgetError */
export function readOwnAttributes(paths: AttributePaths, reader: ItemReader): OwnAttributes {
  const text = paths.time && readText(paths.time, reader);
  const time = text === undefined ? undefined : toEventTime(text);
  const subject = paths.subject && readText(paths.subject, reader);
  const key = paths.key && readText(paths.key, reader);
  const unset: EventAttribute[] = [];
  if (paths.time !== undefined && time === undefined) unset.push("time");
  if (paths.subject !== undefined && subject === undefined) unset.push("subject");
  if (paths.key !== undefined && key === undefined) unset.push("partitionkey");
  return { time, subject, key, unset };
}

/** Returns a value that is allowed as an id, and therefore as any attribute of a CloudEvent. */
function readText(path: RulePath, reader: ItemReader): string | undefined {
  const [value, ...others] = reader.values(path);
  const text = typeof value === "boolean" ? String(value) : value;
  const isFit =
    typeof text === "string" && text !== "" && text.length <= MAX_ID_LENGTH && isAttributeText(text);
  return isFit && others.length === 0 ? text : undefined;
}

/** Smallest number that is read as milliseconds. In seconds, it would be the year 5138. */
const MIN_MILLISECONDS = 1e11;
/** Times before and after which RFC 3339 has no year of four digits, in ms since 1970. */
const [MIN_MS, MAX_MS] = [Date.parse("0000-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")];

function toEventTime(text: string): string | undefined {
  const unit = Math.abs(Number(text)) < MIN_MILLISECONDS ? "epochSeconds" : "epochMillis";
  const ms = parseTimestamp(text, unit) ?? parseTimestamp(text, "iso") ?? parseTimestamp(text, "rfc2822");
  return ms === undefined || ms < MIN_MS || ms > MAX_MS ? undefined : formatTimestamp(ms);
}
