import { z } from "zod";
import type { EntryPlace } from "../../../bus/topics/entry-place.ts";
import type { TopicEntry } from "../../../bus/topics/topics.ts";
import { parseJson } from "../../../event/parse-json.ts";
import { timeInput } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { placeFilters } from "../../apps/organization-channels.ts";

/** Maximum of `offset` plus `limit`. To read further events, clients move the start of the time range with `from`. */
export const MAX_WINDOW = 10_000;

const filters = {
  type: z.string().min(1).max(255).optional().describe("Selects events of this type."),
  from: timeInput.optional().describe("Selects events published at or after this time."),
  to: timeInput.optional().describe("Selects events published before this time."),
  id: z.string().min(1).max(512).optional().describe("Selects events with this id or entry id."),
  path: z
    .string()
    .min(1)
    .max(1_024)
    .optional()
    .describe(
      "JSONPath into the data, with names and indexes only. Selects events that have `value` at this path, or any value if `value` is missing.",
    ),
  value: z
    .string()
    .max(1_024)
    .optional()
    .describe("Value to find at `path`: a string, or a number, boolean or null written as text."),
};

interface PathAndValue {
  readonly path?: string | undefined;
  readonly value?: string | undefined;
}
const hasPath = ({ path, value }: PathAndValue): boolean => path !== undefined || value === undefined;
const MUST_HAVE_PATH = { path: ["path"], message: "is required because value is set" };

export const listQuerySchema = z
  .object({
    ...filters,
    channel: z.string().min(1).max(64).optional().describe("Uid of a channel. Selects its events."),
    order: z
      .enum(["oldest", "newest"])
      .default("oldest")
      .describe("Whether the oldest or the newest event comes first."),
    ...pageQuery,
  })
  .refine(hasPath, MUST_HAVE_PATH)
  // Written with `!` so that NaN passes, because the schemas of `limit` and `offset` already report malformed numbers.
  .refine(({ limit, offset }) => !(limit + offset > MAX_WINDOW), {
    path: ["offset"],
    message: `offset + limit must be at most ${MAX_WINDOW}; use from to read later events`,
  });

const CURSOR_MESSAGE = "must be the `X-Next-Cursor` of an earlier response; leave it out for the first page";

/** Query of the list of all apps. */
export const newestEventsQuery = z
  .object({
    ...placeFilters,
    ...filters,
    limit: pageQuery.limit,
    offset: pageQuery.offset.meta({
      description:
        "Number of events to skip after `cursor`, or at the start of the list. Only for lists without `id` and `path`.",
      shown: { type: "integer", minimum: 0, maximum: MAX_WINDOW, default: 0 },
    }),
    cursor: z
      .string()
      .max(2_048)
      .refine((text) => parseEventCursor(text) !== undefined, CURSOR_MESSAGE)
      .optional()
      .meta({
        description:
          "Value of `X-Next-Cursor` in the response with the previous page. Default: the page with the newest events.",
        example: "1769851800000-0.ZXZlbnRz",
      }),
  })
  .refine(hasPath, MUST_HAVE_PATH)
  .refine(({ offset }) => !(offset > MAX_WINDOW), {
    path: ["offset"],
    message: `must be at most ${MAX_WINDOW}; use cursor to skip further`,
  })
  .refine(({ id, path, offset }) => (id === undefined && path === undefined) || !(offset > 0), {
    path: ["offset"],
    message: "must not be combined with id or path; use cursor to search further",
  });

const CURSOR = /^(\d{1,20}-\d{1,20})\.([A-Za-z0-9_-]+)$/;

export const formatEventCursor = ({ topic, entryId }: EntryPlace): string =>
  `${entryId}.${Buffer.from(topic).toString("base64url")}`;

export function parseEventCursor(text: string): EntryPlace | undefined {
  const [, entryId, topic] = CURSOR.exec(text) ?? [];
  if (entryId === undefined || topic === undefined || !isEntryId(entryId)) return undefined;
  return { entryId, topic: Buffer.from(topic, "base64url").toString() };
}

/** Returns whether both parts of an entry id are 64-bit numbers, as Redis requires. */
export const isEntryId = (text: string): boolean => text.split("-").every((part) => BigInt(part) < 2n ** 64n);

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
