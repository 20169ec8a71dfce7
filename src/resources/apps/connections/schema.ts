import { z } from "zod";
import { CONNECTION_STATES } from "../../../data/connections/connection-tables.ts";
import { timestamp } from "../../../http/fields.ts";
import { CONNECTION_KINDS } from "../../../net/connections/kinds.ts";
import { OAUTH_PROVIDERS } from "../../../net/connections/oauth-providers.ts";
import { hidden, json, orElse, readOnly, time } from "../../kit/field.ts";
import { nameInput, organizationId } from "../../kit/fields.ts";
import { type EntityOf, shape, type TableOf } from "../../kit/shape.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    connections: TableOf<typeof fields>;
  }
}

const MAX_ORIGINS = 20;

/** An origin such as `https://api.example.com`, normalized to the format of `URL.origin`. */
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
    description: "Origins (scheme, host and port) to which the credentials may be sent.",
    example: ["https://api.example.com"],
  });

const [first, ...others] = CONNECTION_KINDS.map((kind) => {
  const input = z.strictObject({
    name: nameInput.meta({ example: "Example API" }),
    kind: z.literal(kind.kind),
    config: kind.configSchema,
    allowedOrigins,
  });
  return "provider" in kind.configSchema.shape ? withProviderOrigins(input) : input;
}) as unknown as readonly [InputSchema, ...InputSchema[]];

type InputSchema = z.ZodObject<{
  name: z.ZodString;
  kind: z.ZodLiteral<string>;
  config: z.ZodType<Readonly<Record<string, unknown>>>;
  allowedOrigins: z.ZodType<string[]>;
}>;

/** Makes the allowed origins optional for connections whose provider has the same origins for all customers. */
function withProviderOrigins<S extends z.ZodRawShape>(input: z.ZodObject<S>) {
  const description =
    "Origins (scheme, host and port) to which the credentials may be sent. The default is the origins of the provider (GET /oauth-providers).";
  return input
    .extend({ allowedOrigins: allowedOrigins.optional().meta({ description }) })
    .transform((given, context) => {
      const { config, allowedOrigins: origins } = given as {
        readonly config: { readonly provider?: string };
        readonly allowedOrigins?: readonly string[];
      };
      if (origins !== undefined) return given;
      const provider = OAUTH_PROVIDERS.get(config.provider ?? "");
      if (provider !== undefined && provider.allowedOrigins.length > 0)
        return { ...given, allowedOrigins: [...provider.allowedOrigins] };
      const message = provider
        ? `is required, because ${provider.title} has an origin for each customer: ${provider.setup}`
        : "is required if config.provider is not set";
      context.addIssue({ code: "custom", path: ["allowedOrigins"], message });
      return z.NEVER;
    });
}

/** Body of a request that creates a connection. A connection must still match this schema after a patch. */
export const connectionInput = z.discriminatedUnion("kind", [first, ...others]);
export type ConnectionInput = z.output<typeof connectionInput>;

/** Body of a merge patch for a connection. The patched connection is validated afterwards. */
export const connectionPatch = z.strictObject({
  name: nameInput.optional().meta({ example: "Example API" }),
  config: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("Settings to change. Secrets that you do not send are kept."),
  allowedOrigins: z.array(z.string()).optional(),
});
export type ConnectionPatch = z.output<typeof connectionPatch>;

const fields = {
  name: readOnly(z.string()),
  kind: readOnly(z.enum(CONNECTION_KINDS.map(({ kind }) => kind))),
  config: readOnly(
    json(
      z
        .record(z.string(), z.unknown())
        .meta({ description: "Settings of the connection, without its secrets." }),
    ),
  ),
  /** In the form of `URL.origin`. */
  allowedOrigins: readOnly(z.array(z.string())),
  state: readOnly(
    z.enum(CONNECTION_STATES).meta({
      description:
        "`ok`: the credentials can be used. `needsReauth`: the issuer rejects the grant, or a person has not authorized the connection yet. `error`: the token issuer rejects the client or the settings.",
    }),
  ),
  lastError: readOnly(
    json(
      z
        .object({
          code: z.string().meta({
            description:
              "Error code of the issuer (RFC 6749, section 5.2), `never_authorized` or `token_lost`. `token_lost`: an issuer's response with a new refresh token was lost before it was stored.",
            example: "invalid_grant",
          }),
          message: z.string().meta({ description: "Description of the error and how to fix it." }),
          at: timestamp,
        })
        .nullable()
        .meta({ description: "Error that caused the state. Null if the state is `ok`." }),
    ),
  ),
  lastUsedAt: readOnly(
    time(timestamp.nullable().meta({ description: "Time of the last use, precise to the minute." })),
  ),
  organizationId,
  /** The secret fields, encrypted as one JSON object. */
  sealedSecrets: hidden(z.string()),
  /** Incremented with each change, except when only the name changes. */
  version: orElse(hidden(z.int()), () => 1),
};

/** Response schema of a connection. It contains no secret settings. */
export const connection = shape({
  prefix: "con",
  fields,
  meta: { id: "Connection", description: "Stored credentials for other servers." },
});
export type Connection = EntityOf<typeof connection>;
