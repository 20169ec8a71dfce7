import { z } from "zod";
import { CONNECTION_STATES, type ConnectionRow } from "../../../data/connection-tables.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { CONNECTION_KINDS } from "../../../net/connections/kinds.ts";
import { nameInput } from "../../kit/fields.ts";

const MAX_ORIGINS = 20;

/** `https://api.example.com`, as `URL.origin` spells it. */
const origin = z
  .string()
  .max(512)
  .transform((text, context): string => {
    const url = URL.parse(text);
    const isBare = url?.pathname === "/" && !url.search && !url.hash && !url.username && !url.password;
    if (url && isBare && (url.protocol === "https:" || url.protocol === "http:")) return url.origin;
    context.addIssue({ code: "custom", message: "must be an origin such as https://api.example.com" });
    return z.NEVER;
  });

const allowedOrigins = z
  .array(origin)
  .min(1)
  .max(MAX_ORIGINS)
  .transform((origins) => [...new Set(origins)])
  .meta({
    description: "Where the credentials may be sent: scheme, host and port. They never go anywhere else.",
    example: ["https://api.example.com"],
  });

const [first, ...others] = CONNECTION_KINDS.map((kind) =>
  z.strictObject({
    name: nameInput.meta({ example: "Example API" }),
    kind: z.literal(kind.kind),
    config: kind.settings,
    allowedOrigins,
  }),
) as unknown as readonly [InputSchema, ...InputSchema[]];

type InputSchema = z.ZodObject<{
  name: z.ZodString;
  kind: z.ZodLiteral<string>;
  config: z.ZodType<Readonly<Record<string, unknown>>>;
  allowedOrigins: z.ZodType<string[]>;
}>;

/** What a connection is made of, and what a patched one must still be. */
export const connectionInput = z.discriminatedUnion("kind", [first, ...others]);
export type ConnectionInput = z.output<typeof connectionInput>;

/** What a merge patch may hold, as far as that can be told before it is applied. */
export const connectionPatch = z.strictObject({
  name: nameInput.optional().meta({ example: "Example API" }),
  config: z.record(z.string(), z.unknown()).optional().describe("Secrets that are not sent are kept."),
  allowedOrigins: z.array(z.string()).optional(),
});
export type ConnectionPatch = z.output<typeof connectionPatch>;

/** The connection as the API answers it: never with a secret. */
export const connectionSchema = z
  .object({
    id: id("con"),
    name: z.string(),
    kind: z.enum(CONNECTION_KINDS.map(({ kind }) => kind)),
    config: z.record(z.string(), z.unknown()).meta({ description: "Without the secret settings." }),
    allowedOrigins: z.array(z.string()),
    state: z.enum(CONNECTION_STATES).meta({
      description:
        "`needsReauth`: its grant is refused, or was never given; `error`: the issuer of its tokens refuses the client or the settings.",
    }),
    lastUsedAt: timestamp.nullable().meta({ description: "To the minute." }),
    organizationId: id("org"),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "Connection", description: "Stored credentials for other servers." });
export type Connection = Shown<z.output<typeof connectionSchema>>;

export function renderConnection(row: ConnectionRow): Connection {
  const { id, name, config, allowedOrigins, state, organizationId, lastUsedAt, createdAt, updatedAt } = row;
  return {
    ...{ id, name, config, allowedOrigins, state, organizationId },
    kind: row.kind as Connection["kind"],
    lastUsedAt: lastUsedAt && formatTimestamp(lastUsedAt.getTime()),
    createdAt: formatTimestamp(createdAt.getTime()),
    updatedAt: formatTimestamp(updatedAt.getTime()),
  };
}
