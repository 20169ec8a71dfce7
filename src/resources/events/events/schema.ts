import { z } from "zod";
import type { TopicEntry } from "../../../bus/topics/topics.ts";
import { timeInput } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";

/** How far into a list one can look; further on, `from` goes. */
export const MAX_WINDOW = 10_000;

export const listQuerySchema = z
  .object({
    type: z.string().min(1).max(255).optional(),
    /** By the time at which they were appended: at or after `from`, before `to`. */
    from: timeInput.optional(),
    to: timeInput.optional(),
    channel: z.string().min(1).max(64).optional().describe("The uid of a channel: its events alone."),
    id: z.string().min(1).max(512).optional().describe("Events of this id alone."),
    path: z
      .string()
      .min(1)
      .max(1_024)
      .optional()
      .describe("A JSONPath of names and indexes into the data: events that have `value` there alone."),
    value: z.string().max(1_024).optional().describe("A string, number or boolean as text."),
    order: z.enum(["oldest", "newest"]).default("oldest").describe("Which come first."),
    ...pageQuery,
  })
  .refine(({ path, value }) => (path === undefined) === (value === undefined), {
    path: ["value"],
    message: "goes with path",
  })
  // A malformed number is a finding of its own: with NaN this one is silent.
  .refine(({ limit, offset }) => !(limit + offset > MAX_WINDOW), {
    path: ["offset"],
    message: `offset and limit reach ${MAX_WINDOW} together at most; go on with from`,
  });

export const TOPIC_EXAMPLE = "events.org_1.apps.app.event_received.app_1.main.push";
export const ENTRY_EXAMPLE = "1769851800000-0";

/** An event as the API answers it: the sender's extensions stand beside what is named here. */
export const eventSchema = z
  .looseObject({
    specversion: z.string().meta({ example: "1.0" }),
    id: z.string(),
    source: z.string(),
    type: z.string(),
    time: z.string().optional(),
    datacontenttype: z.string().optional(),
    data: z.unknown().optional(),
    data_base64: z.string().optional(),
    topic: z.string().meta({ example: TOPIC_EXAMPLE }),
    entryId: z.string().meta({ example: ENTRY_EXAMPLE }),
  })
  .meta({
    id: "Event",
    description: "A CloudEvents 1.0 event in its JSON format, with the place where it stands on the bus.",
  });

/**
 * An entry as CloudEvents JSON (CloudEvents 1.0 JSON format, sections 2 and 3.1) with `topic` and `entryId`. JSON data is the very text
 * of the entry: parsed and written again, its numbers could change.
 */
export function eventJson(topic: string, { entryId, fields }: TopicEntry): string {
  const isJson = isJsonType(fields.datacontenttype);
  const members: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    // The sender's extension of that name gives way.
    if (name === "topic") continue;
    const isRaw = name === "data" && isJson && isJsonText(value);
    members.push(`${JSON.stringify(name)}:${isRaw ? value : JSON.stringify(value)}`);
  }
  members.push(`"topic":${JSON.stringify(topic)}`, `"entryId":${JSON.stringify(entryId)}`);
  return `{${members.join(",")}}`;
}

const isJsonType = (type: string | undefined): boolean =>
  type === undefined || /^[^;]*[/+]json\s*(?:;|$)/i.test(type);

/** Any Redis client may have written the entry; the answer must be JSON all the same. */
function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
