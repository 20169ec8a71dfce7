import { z } from "zod";
import { commonFields } from "../../event/channel.ts";
import { createIssueReporter, integer, pathText, text } from "../../event/config-fields.ts";
import { pullFields } from "../pull/pull-fields.ts";
import { headersSchema, querySchema, urlSchema } from "../pull/request-fields.ts";

const MIB = 1024 * 1024;
const DAY_MS = 86_400_000;

/** Maximum length of an event id. A longer id could not be sent back, because servers usually reject larger headers. */
export const MAX_ID_CHARS = 8192;

const lineText = z.string().regex(/^[^\r\n\0]*$/, "must not contain line breaks or NUL");

const sseShape = {
  ...commonFields,
  ...pullFields,
  url: urlSchema().describe("URL of the stream."),
  method: z.enum(["GET", "POST"]).default("GET").describe("HTTP method of the request."),
  headers: headersSchema(["accept", "last-event-id"]),
  query: querySchema,
  body: z
    .string()
    .max(MIB)
    .optional()
    .describe("Request body for POST. Sent as JSON unless `headers` sets a content-type."),
  eventNames: z
    .array(lineText.min(1).max(255))
    .min(1)
    .max(100)
    .optional()
    .describe(
      "Event names to accept. Events without a name count as `message`, and other events are skipped. By default, all events are accepted.",
    ),
  dataFormat: z
    .enum(["json", "text", "jsonLines"])
    .default("json")
    .describe("Format of an event's data. With `jsonLines`, each line is an item."),
  terminator: pathText
    .optional()
    .describe(
      "Data that marks the end of a stream, such as `[DONE]`. An event with this data is not published. The stream is then reopened, as after any other end.",
    ),
  maxEventBytes: integer(1, 25 * MIB, MIB).describe(
    "Maximum bytes of data in one event. A larger event or line ends the connection. If this keeps happening for minutes, the channel goes to state `error`.",
  ),
  startAt: z
    .union([
      z.literal("now"),
      z.strictObject({
        lastEventId: lineText.min(1).max(MAX_ID_CHARS).describe("Event id after which to start."),
      }),
    ])
    .describe("Starting point of the first connection. Ignored once the channel has a cursor.")
    .default("now"),
  resume: z
    .strictObject({
      mode: z
        .enum(["lastEventId", "query", "none"])
        .default("lastEventId")
        .describe(
          "How the server learns where to resume: from the `Last-Event-ID` header, from a query parameter, or not at all.",
        ),
      param: text(256).optional().describe("Name of the query parameter. Required when `mode` is query."),
      expiredOn: z
        .strictObject({
          statuses: z
            .array(integer(400, 499))
            .max(20)
            .describe(
              "Response statuses that mean that the server no longer knows the last event id. Some servers send 400 or 404.",
            )
            .default([410]),
        })
        .prefault({})
        .describe("How a response indicates that the position has expired."),
      onExpired: z
        .enum(["skip", "stop"])
        .describe(
          "How to handle an expired position. `skip` opens the stream without it, and reports the error `gap`. The position is kept until the server sends an event. `stop` puts the channel into state `error`.",
        )
        .default("skip"),
    })
    .prefault({})
    .describe("How to resume an interrupted stream."),
  reconnect: z
    .strictObject({
      initialMs: integer(10, 600_000, 1000).describe("Wait before the first reconnect, in ms."),
      maxMs: integer(10, DAY_MS, 60_000).describe(
        "Maximum wait between reconnects, in ms. Also limits the server's `retry` value.",
      ),
      factor: z
        .number()
        .min(1)
        .max(10)
        .default(2)
        .describe("Factor by which the wait grows with each consecutive failure."),
      jitter: z.number().min(0).max(1).default(0.5).describe("Fraction of each wait that is random."),
      resetAfterMs: integer(0, DAY_MS, 60_000).describe(
        "A stream that stayed open this long, in ms, resets the wait to `initialMs`.",
      ),
    })
    .prefault({})
    .describe(
      "When to reconnect after a stream ends. The server can lengthen the wait with `retry` or `Retry-After`.",
    ),
  stopOn: z
    .strictObject({
      event: lineText.min(1).max(255).optional().describe("Name of the event."),
      data: pathText.optional().describe("Data of the event."),
    })
    .optional()
    .describe(
      "The name or data of the event that ends a stream for good. That event is published, and then the channel pauses until someone resumes it. If its data equals `terminator`, it is not published.",
    ),
  connectTimeoutMs: integer(100, 300_000, 30_000).describe(
    "Timeout for connecting, in ms, and then again for receiving the response headers.",
  ),
  idleTimeoutMs: integer(100, DAY_MS, 300_000).describe(
    "Time without any data after which to reconnect, in ms. Comments count as data.",
  ),
  maxConnectionAgeMs: integer(1000, 7 * DAY_MS)
    .optional()
    .describe("Maximum age of a connection before it is replaced by a new one, in ms."),
  redirects: integer(0, 10, 5).describe("Maximum number of redirects to follow."),
} as const;

const sseObject = z.strictObject(sseShape);

export type SseConfig = z.output<typeof sseObject>;

export const sseConfigSchema = sseObject
  .superRefine((config, context) => {
    const { body, dataFormat, itemsPath, method, query, reconnect, resume, startAt, stopOn, url } = config;
    const { mode, param } = resume;
    const refuse = createIssueReporter(context);
    if (body !== undefined && method === "GET")
      refuse("body", "is not allowed with GET; set `method` to POST");
    if (itemsPath !== undefined && dataFormat !== "json")
      refuse("itemsPath", `is not allowed when \`dataFormat\` is ${dataFormat}`);
    if (mode === "query" && param === undefined) refuse("resume.param", "is required when `mode` is query");
    if (mode !== "query" && param !== undefined)
      refuse("resume.param", "is only allowed when `mode` is query");
    if (
      mode === "query" &&
      param !== undefined &&
      (param in query || URL.parse(url)?.searchParams.has(param))
    )
      refuse("resume.param", "is already used in `query` or `url`");
    if (mode === "none" && startAt !== "now") refuse("startAt", "must be now when `resume.mode` is none");
    if (reconnect.maxMs < reconnect.initialMs) refuse("reconnect.maxMs", "must not be less than `initialMs`");
    if (stopOn !== undefined && stopOn.event === undefined && stopOn.data === undefined)
      refuse("stopOn", "must have `event` or `data`");
  })
  .describe(
    "Inlet keeps a connection to a stream of server-sent events. Without an `idPath`, an event's id is its last event id. Later events without an id of their own get that id with `/2`, `/3` and so on appended. Until the server sends an id, repeated events cannot be recognized.",
  );
