import { z } from "zod";
import { commonSettings } from "../../event/channel.ts";
import { integer, pathText, refuseIn, text } from "../../event/setting-fields.ts";
import { pullSettings } from "../pull/pull-settings.ts";
import { headersSettings, querySettings, urlSettings } from "../pull/request-settings.ts";

const MIB = 1024 * 1024;
const DAY_MS = 86_400_000;

/** Maximum length of a last event id. Servers usually reject larger headers, so a longer id could not be sent back. */
export const MAX_ID_CHARS = 8192;

const lineText = z.string().regex(/^[^\r\n\0]*$/, "must not contain line breaks or NUL");

const sseShape = {
  ...commonSettings,
  ...pullSettings,
  url: urlSettings().describe("Where the stream is."),
  method: z.enum(["GET", "POST"]).default("GET").describe("How the stream is asked for."),
  headers: headersSettings(["accept", "last-event-id"]),
  query: querySettings,
  body: z
    .string()
    .max(MIB)
    .optional()
    .describe("Sent with a POST, as JSON unless `headers` has a content-type."),
  eventNames: z
    .array(lineText.min(1).max(255))
    .min(1)
    .max(100)
    .optional()
    .describe(
      "The event names that are taken; `message` is what has none. Without it all are. Others are passed over.",
    ),
  dataFormat: z
    .enum(["json", "text", "jsonLines"])
    .default("json")
    .describe("How the data of an event is read; of `jsonLines` each line is an item."),
  terminator: pathText
    .optional()
    .describe(
      "Data, such as `[DONE]`, that ends the stream without being an event; it is opened again like one that was closed.",
    ),
  maxEventBytes: integer(1, 25 * MIB, MIB).describe(
    "An event of more data ends the stream, and so does a line that could only become one; where it comes again and again over minutes the channel shows an error.",
  ),
  startAt: z
    .union([
      z.literal("now"),
      z.strictObject({
        lastEventId: lineText.min(1).max(MAX_ID_CHARS).describe("The id after which it begins."),
      }),
    ])
    .default("now")
    .describe("Where the very first connection begins; once the channel has a cursor, that decides."),
  resume: z
    .strictObject({
      mode: z
        .enum(["lastEventId", "query", "none"])
        .default("lastEventId")
        .describe(
          "How the server is told where to go on: by the header Last-Event-ID, in the query, or not at all.",
        ),
      param: text(256).optional().describe("The query's name for it."),
    })
    .prefault({})
    .describe("How a stream that was cut is gone on with."),
  reconnect: z
    .strictObject({
      initialMs: integer(10, 600_000, 1000).describe("The first wait before it is opened again."),
      maxMs: integer(10, DAY_MS, 60_000).describe(
        "The longest wait; also the most that the server's `retry` may ask for.",
      ),
      factor: z
        .number()
        .min(1)
        .max(10)
        .default(2)
        .describe("By what each failure in a row lengthens the wait."),
      jitter: z.number().min(0).max(1).default(0.5).describe("The part of each wait that is left to chance."),
      resetAfterMs: integer(0, DAY_MS, 60_000).describe(
        "A stream that was open for so long begins with the first wait again.",
      ),
    })
    .prefault({})
    .describe(
      "When a stream that ended is opened again. A `retry` of the server lengthens the wait, `Retry-After` too.",
    ),
  stopOn: z
    .strictObject({
      event: lineText.min(1).max(255).optional().describe("An event's name."),
      data: pathText.optional().describe("An event's data."),
    })
    .optional()
    .describe(
      "The event after which there will be no more: it is taken, then the channel stops until it is resumed. With the data of `terminator` it stops without an event.",
    ),
  connectTimeoutMs: integer(100, 300_000, 30_000).describe(
    "How long connecting may take, and then the head of the answer.",
  ),
  idleTimeoutMs: integer(100, DAY_MS, 300_000).describe(
    "A stream without a byte for so long, comments counted, is opened anew.",
  ),
  maxConnectionAgeMs: integer(1000, 7 * DAY_MS)
    .optional()
    .describe("A stream is opened anew after so long."),
  redirects: integer(0, 10, 5).describe("How many redirects are followed."),
} as const;

const sseObject = z.strictObject(sseShape);

/** The `config` of an SSE channel with defaults filled in. */
export type SseSettings = z.output<typeof sseObject>;

/** The `config` of an SSE channel. */
export const sseSettings = sseObject
  .superRefine((settings, context) => {
    const { body, dataFormat, itemsPath, method, query, reconnect, resume, startAt, stopOn, url } = settings;
    const { mode, param } = resume;
    const refuse = refuseIn(context);
    if (body !== undefined && method === "GET") refuse("body", "a GET has none; set `method` to POST");
    if (itemsPath !== undefined && dataFormat !== "json")
      refuse("itemsPath", `has no meaning where \`dataFormat\` is ${dataFormat}`);
    if (mode === "query" && param === undefined) refuse("resume.param", "is needed where `mode` is query");
    if (mode !== "query" && param !== undefined) refuse("resume.param", "is for the `mode` query alone");
    if (
      mode === "query" &&
      param !== undefined &&
      (param in query || URL.parse(url)?.searchParams.has(param))
    )
      refuse("resume.param", "stands in `query` or `url` already");
    if (mode === "none" && startAt !== "now")
      refuse("startAt", "cannot be told to the server where `resume.mode` is none");
    if (reconnect.maxMs < reconnect.initialMs) refuse("reconnect.maxMs", "is less than `initialMs`");
    if (stopOn !== undefined && stopOn.event === undefined && stopOn.data === undefined)
      refuse("stopOn", "needs `event` or `data`");
  })
  .describe(
    "Inlet keeps a connection to a stream of server-sent events. Without an `idPath` an event is called by its last event id, and those that follow it without one of their own have `/2`, `/3` and so on behind it; before the server has given an id, nothing can be recognized as sent before.",
  );
