import { z } from "zod";
import { eventReceipts, quarantineReceipts } from "../receipts.ts";
import { COMMON_HEADERS, type ErrorName, errorResponse, statusOf } from "./errors.ts";
import type { JsonSchema, SchemaWriter } from "./schemas.ts";

const outcomeSchema = z
  .object({
    received: z.int().meta({ description: "Number of items in the delivery.", example: 1 }),
    published: z.int().meta({ description: "Number of events published.", example: 1 }),
    duplicates: z.int().meta({ description: "Number of events that were already published.", example: 0 }),
    ignored: z.int().meta({
      description:
        "Number of items that no definition published because of its `when`, or that matched none with `onNoMatch: ignore`.",
      example: 0,
    }),
    quarantined: z.int().meta({ description: "Number of items stored in quarantine.", example: 0 }),
    events: eventReceipts,
    quarantine: quarantineReceipts,
  })
  .meta({ id: "Outcome", description: "Result of one delivery." });

const readinessSchema = z
  .object({
    status: z.enum(["ready", "degraded", "notReady"]),
    checks: z.record(
      z.string(),
      z.looseObject({
        ok: z.boolean(),
        reason: z.string().optional(),
        warnings: z.array(z.string()).optional(),
      }),
    ),
  })
  .meta({
    id: "Readiness",
    description:
      "Whether the gateway can publish events, with the result of each check. `degraded` means that it can, but that a check has warnings.",
    example: { status: "ready", checks: { redis: { ok: true } } },
  });

const requestIdHeader = { "X-Request-Id": COMMON_HEADERS["X-Request-Id"] };
const ANY_BODY = { schema: {} };

/** Describes the paths outside the management API: hooks, health checks, metrics, documentation and console. */
export function outsidePaths({
  schemas,
  hooksUrl,
}: {
  readonly schemas: SchemaWriter;
  readonly hooksUrl: string;
}): Readonly<Record<string, object>> {
  const readiness = json(schemas.output(readinessSchema));
  return {
    "/hooks/{channelId}": {
      servers: [{ url: hooksUrl, description: "Base URL of the hooks." }],
      post: {
        operationId: "deliver",
        summary: "Send a delivery to a push channel",
        description:
          "The address is the channel's `url`. Treat it as a credential. A 200 means that all events are published with the " +
          "durability configured for the gateway. After any other response, the delivery can be sent again: Inlet recognizes " +
          "events that are already published. A body without a Content-Type is read as JSON. Requires no token, because " +
          "the channel verifies deliveries itself. A channel whose `config.methods` lists them also accepts PUT and PATCH with a " +
          "body, GET and DELETE with a query, and HEAD.",
        tags: ["Hooks"],
        security: [],
        parameters: [
          {
            name: "channelId",
            in: "path",
            required: true,
            schema: { type: "string" },
            example: "ch_6v3k9q2x7r1m5t8b4n0c6z2d9f3g7h1j5p8s",
          },
        ],
        requestBody: {
          required: true,
          content: {
            "application/json": { ...ANY_BODY, example: { type: "push", id: "1" } },
            "application/x-ndjson": ANY_BODY,
            "application/x-www-form-urlencoded": ANY_BODY,
            "multipart/form-data": ANY_BODY,
            "application/xml": ANY_BODY,
            "text/plain": ANY_BODY,
            "application/octet-stream": ANY_BODY,
          },
        },
        responses: {
          "200": answer("Accepted.", json(schemas.output(outcomeSchema))),
          ...errors({
            InvalidParameters:
              "the channel rejects deliveries with invalid items; `details` names each invalid item",
            Unauthenticated: "the delivery could not be verified",
            NotFound: "no push channel has this address",
            PayloadTooLarge: "the body is too large, or contains too many items",
            MethodNotAllowed: "the channel does not accept POST (`config.methods`)",
            UnsupportedMediaType: "the body is multipart, but no form",
            RateLimited: "too many deliveries",
            Internal: "an unexpected error occurred in Inlet",
            Unavailable: "the delivery may not have been published completely; send it again",
          }),
        },
      },
    },
    "/healthz": getOnly({
      operationId: "isAlive",
      summary: "Check that the gateway is running",
      description: "Responds without contacting PostgreSQL or Redis.",
      responses: {
        "200": answer(
          "The gateway is running.",
          json({ type: "object", properties: { status: { const: "ok" } } }),
        ),
      },
    }),
    "/readyz": getOnly({
      operationId: "isReady",
      summary: "Check whether the gateway can publish events",
      description:
        "Checks the services that publishing depends on within two seconds, and names the failing ones.",
      responses: {
        "200": answer("The gateway can publish events.", readiness),
        "503": answer("The gateway cannot publish events.", readiness),
      },
    }),
    "/metrics": getOnly({
      operationId: "getMetrics",
      summary: "Get metrics for Prometheus",
      description:
        "Requires the metrics token (`INLET_METRICS_TOKEN`) as bearer token. With `INLET_METRICS_LISTEN`, the gateway also serves metrics on a separate port without a token.",
      security: [{ bearer: [] }],
      responses: {
        "200": answer("Metrics in the text format of Prometheus.", text("text/plain")),
        ...errors({
          Unauthenticated: "the metrics token is missing or wrong",
          NotFound: "no metrics token is configured",
        }),
      },
    }),
    "/docs": getOnly({
      operationId: "getDocs",
      summary: "Open the API reference",
      description:
        "Shows this document as a web page. After entering a token, you can send requests from the page.",
      responses: { "200": answer("The API reference as an HTML page.", text("text/html")) },
    }),
    "/console": getOnly({
      operationId: "getConsole",
      summary: "Open the console",
      description:
        "Serves the web console for operators. Its views have paths below `/console`. The page is public: it asks for sign-in and then calls this API.",
      responses: { "200": answer("The console as an HTML page.", text("text/html")) },
    }),
  };
}

const json = (schema: JsonSchema) => ({ "application/json": { schema } });
const text = (contentType: string) => ({ [contentType]: { schema: { type: "string" } } });
const answer = (description: string, content: object) => ({ description, headers: requestIdHeader, content });

/** Describes a path that supports only GET and HEAD. */
const getOnly = ({
  responses,
  ...operation
}: {
  readonly responses: object;
  readonly [field: string]: unknown;
}) => ({
  servers: [{ url: "/" }],
  get: {
    tags: ["Operations"],
    security: [],
    ...operation,
    responses: { ...responses, ...errors({ MethodNotAllowed: "the method is neither GET nor HEAD" }) },
  },
});

function errors(descriptions: Partial<Record<ErrorName, string>>): Readonly<Record<string, object>> {
  return Object.fromEntries(
    (Object.entries(descriptions) as [ErrorName, string][]).map(([name, when]) => [
      statusOf(name),
      errorResponse(name, requestIdHeader, when),
    ]),
  );
}
