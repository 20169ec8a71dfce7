import { z } from "zod";
import { CONNECTION_STATES } from "../../../data/tables.ts";
import { timestamp } from "../../../http/fields.ts";
import { CONNECTION_KINDS } from "../../../net/connections/kinds.ts";
import { hidden, json, orElse, readOnly, time } from "../../kit/field.ts";
import { nameInput, organizationId } from "../../kit/fields.ts";
import { type EntityOf, shape, type TableOf } from "../../kit/shape.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    connections: TableOf<typeof fields>;
  }
}

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

/** The body that makes a connection; a patched one must still fit it. */
export const connectionInput = z.discriminatedUnion("kind", [first, ...others]);
export type ConnectionInput = z.output<typeof connectionInput>;

/** A merge patch, as far as it can be checked before it is applied. */
export const connectionPatch = z.strictObject({
  name: nameInput.optional().meta({ example: "Example API" }),
  config: z.record(z.string(), z.unknown()).optional().describe("Secrets that are not sent are kept."),
  allowedOrigins: z.array(z.string()).optional(),
});
export type ConnectionPatch = z.output<typeof connectionPatch>;

const fields = {
  name: readOnly(z.string()),
  kind: readOnly(z.enum(CONNECTION_KINDS.map(({ kind }) => kind))),
  /** The settings without the secret ones. */
  config: readOnly(
    json(z.record(z.string(), z.unknown()).meta({ description: "Without the secret settings." })),
  ),
  /** As `URL.origin` spells them. */
  allowedOrigins: readOnly(z.array(z.string())),
  state: readOnly(
    z.enum(CONNECTION_STATES).meta({
      description:
        "`needsReauth`: its grant is refused, or was never given; `error`: the issuer of its tokens refuses the client or the settings.",
    }),
  ),
  lastError: readOnly(
    json(
      z
        .object({
          code: z.string().meta({
            description:
              "The issuer's (RFC 6749, section 5.2), `never_authorized`, or `token_lost`: an answer of the issuer was lost before it was stored, and with it the refresh token that works.",
            example: "invalid_grant",
          }),
          message: z.string().meta({ description: "What went wrong, and what to do about it." }),
          at: timestamp,
        })
        .nullable()
        .meta({ description: "Why the state is not `ok`." }),
    ),
  ),
  lastUsedAt: readOnly(time(timestamp.nullable().meta({ description: "To the minute." }))),
  organizationId,
  /** The secret settings as one sealed JSON object. */
  sealedSecrets: hidden(z.string()),
  /** Counts the writes of all but the name. */
  version: orElse(hidden(z.int()), () => 1),
};

/** The connection as the API answers it: never with a secret. */
export const connection = shape({
  prefix: "con",
  fields,
  meta: { id: "Connection", description: "Stored credentials for other servers." },
});
export type Connection = EntityOf<typeof connection>;
