import { z } from "zod";
import type { TopicEntry } from "../../../bus/topics/topics.ts";
import { parseJson } from "../../../event/parse-json.ts";
import { timeInput } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";

/** Maximum of `offset` plus `limit`. To read further events, clients move the start of the time range with `from`. */
export const MAX_WINDOW = 10_000;

export const listQuerySchema = z
  .object({
    type: z.string().min(1).max(255).optional().describe("Selects events of this type."),
    from: timeInput.optional().describe("Selects events published at or after this time."),
    to: timeInput.optional().describe("Selects events published before this time."),
    channel: z.string().min(1).max(64).optional().describe("Uid of a channel. Selects its events."),
    id: z.string().min(1).max(512).optional().describe("Selects events with this id."),
    path: z
      .string()
      .min(1)
      .max(1_024)
      .optional()
      .describe(
        "JSONPath into the data, with names and indexes only. Selects events that have `value` at this path.",
      ),
    value: z
      .string()
      .max(1_024)
      .optional()
      .describe("Value to find at `path`: a string, or a number or boolean written as text."),
    order: z
      .enum(["oldest", "newest"])
      .default("oldest")
      .describe("Whether the oldest or the newest event comes first."),
    ...pageQuery,
  })
  .refine(({ path, value }) => (path === undefined) === (value === undefined), {
    path: ["value"],
    message: "must be given together with path",
  })
  // Written with `!` so that NaN passes, because the schemas of `limit` and `offset` already report malformed numbers.
  .refine(({ limit, offset }) => !(limit + offset > MAX_WINDOW), {
    path: ["offset"],
    message: `offset + limit must be at most ${MAX_WINDOW}; use from to read later events`,
  });

export const TOPIC_EXAMPLE = "events.org_1.apps.app.event_received.app_1.main.push";
export const ENTRY_EXAMPLE = "1769851800000-0";

/** Events can have further members, because senders can add extension attributes. */
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
    description:
      "A CloudEvents 1.0 event in the JSON format. `topic` and `entryId` identify its entry in Redis.",
  });

/**
 * Formats an entry as a CloudEvent in JSON (CloudEvents 1.0 JSON format, sections 2 and 3.1), with `topic` and
 * `entryId` added. JSON data is copied as text, because parsing could alter large numbers.
 */
export function eventJson(topic: string, { entryId, fields }: TopicEntry): string {
  const isJson = isJsonType(fields.datacontenttype);
  const members: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    // Skip a sender's attribute named `topic`, because the topic's name is added under this key below.
    if (name === "topic") continue;
    const isRaw = name === "data" && isJson && isJsonText(value);
    members.push(`${JSON.stringify(name)}:${isRaw ? value : JSON.stringify(value)}`);
  }
  members.push(`"topic":${JSON.stringify(topic)}`, `"entryId":${JSON.stringify(entryId)}`);
  return `{${members.join(",")}}`;
}

const isJsonType = (type: string | undefined): boolean =>
  type === undefined || /^[^;]*[/+]json\s*(?:;|$)/i.test(type);

/** Checks that the data is JSON, because other Redis clients can write entries and the response must be valid JSON. */
function isJsonText(text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch {
    return false;
  }
}
