import { z } from "zod";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import { COMMON_HEADERS, type ErrorName, errorResponse, statusOf } from "./errors.ts";
import type { JsonSchema, SchemaWriter } from "./schemas.ts";

const outcomeSchema = z
  .object({
    received: z.int().meta({ description: "Items of the delivery.", example: 1 }),
    published: z.int().meta({ description: "Events that are on the bus now.", example: 1 }),
    duplicates: z.int().meta({ description: "Events that were there already.", example: 0 }),
    quarantined: z.int().meta({ description: "Items that are kept to be looked into.", example: 0 }),
    events: z.array(
      z.object({
        id: z.string(),
        type: z.string(),
        topic: z.string(),
        entryId: z.string(),
        status: z.enum(["published", "duplicate"]),
      }),
    ),
    quarantine: z.array(
      z.object({ id: z.string(), reason: z.enum(QUARANTINE_REASONS), path: z.string().optional() }),
    ),
  })
  .meta({ id: "Outcome", description: "What became of one delivery." });

const readinessSchema = z
  .object({
    status: z.enum(["ready", "notReady"]),
    checks: z.record(z.string(), z.looseObject({ ok: z.boolean(), reason: z.string().optional() })),
  })
  .meta({
    id: "Readiness",
    description: "Whether the gateway can publish, and what is wrong where it cannot.",
    example: { status: "ready", checks: { redis: { ok: true } } },
  });

const requestIdHeader = { "X-Request-Id": COMMON_HEADERS["X-Request-Id"] };
const ANY_BODY = { schema: {} };

/** The paths beside the management API: hooks and operations, which need no bearer token of it. */
export function outsidePaths({
  schemas,
  hooksUrl,
}: {
  readonly schemas: SchemaWriter;
  readonly hooksUrl: string;
}): Readonly<Record<string, object>> {
  const root = { servers: [{ url: "/" }] };
  const json = (schema: JsonSchema) => ({ "application/json": { schema } });
  const answer = (description: string, content: object) => ({
    description,
    headers: requestIdHeader,
    content,
  });
  return {
    "/hooks/{channelId}": {
      servers: [{ url: hooksUrl, description: "Where events are sent to." }],
      post: {
        operationId: "deliver",
        summary: "Send a delivery to a push channel",
        description:
          "The address is the channel's `url`, and a credential. 200 says that every event is on the bus, as durable as " +
          "the gateway is set up to be; whatever else is answered, the delivery may be sent again, and what was published " +
          "before is recognized. Without a Content-Type the body is read as JSON. Needs no token: the channel's " +
          "verification decides.",
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
            "application/xml": ANY_BODY,
            "text/plain": ANY_BODY,
            "application/octet-stream": ANY_BODY,
          },
        },
        responses: {
          "200": answer("Accepted.", json(schemas.output(outcomeSchema))),
          ...errors({
            InvalidParameters: "the channel refuses what does not fit; `details` names each item",
            Unauthenticated: "the delivery could not be verified",
            NotFound: "there is no such push channel",
            PayloadTooLarge: "the body is too large, or holds too many items",
            UnsupportedMediaType: "the body is multipart",
            RateLimited: "too many deliveries",
            Internal: "something went wrong inside Inlet",
            Unavailable: "not all of it is certain; send it again",
          }),
        },
      },
    },
    "/healthz": {
      ...root,
      get: {
        ...operation("isAlive", "Tell that the gateway is alive"),
        description: "The process answers; it asks nothing that it depends on.",
        responses: {
          ...OTHER_METHOD,
          "200": answer("It is.", json({ type: "object", properties: { status: { const: "ok" } } })),
        },
      },
    },
    "/readyz": {
      ...root,
      get: {
        ...operation("isReady", "Tell whether the gateway can publish"),
        description: "Asks what publishing depends on, within two seconds, and names what is wrong.",
        responses: {
          ...OTHER_METHOD,
          "200": answer("It can.", json(schemas.output(readinessSchema))),
          "503": answer("It cannot.", json(schemas.output(readinessSchema))),
        },
      },
    },
    "/metrics": {
      ...root,
      get: {
        ...operation("getMetrics", "Get the metrics for Prometheus"),
        description:
          "With the metrics token (`INLET_METRICS_TOKEN`) as bearer token. `INLET_METRICS_LISTEN` gives them a port of their own, without a token.",
        security: [{ bearer: [] }],
        responses: {
          "200": answer("The metrics.", { "text/plain": { schema: { type: "string" } } }),
          ...OTHER_METHOD,
          ...errors({
            Unauthenticated: "the metrics token is missing or wrong",
            NotFound: "the gateway has no metrics token",
          }),
        },
      },
    },
    "/docs": {
      ...root,
      get: {
        ...operation("getDocs", "Read this document as a page"),
        description: "A page for people. Requests can be tried out on it, with a token that is typed in.",
        responses: {
          ...OTHER_METHOD,
          "200": answer("The page.", { "text/html": { schema: { type: "string" } } }),
        },
      },
    },
    "/console": {
      ...root,
      get: {
        ...operation("getConsole", "Open the console"),
        description:
          "The operator's page, and the addresses of its views below it. It is the page only: who opens it signs in there, and it calls this API.",
        responses: {
          ...OTHER_METHOD,
          "200": answer("The page.", { "text/html": { schema: { type: "string" } } }),
        },
      },
    },
  };
}

const OTHER_METHOD = errors({ MethodNotAllowed: "another method than GET and HEAD" });

const operation = (operationId: string, summary: string) => ({
  operationId,
  summary,
  tags: ["Operations"],
  security: [],
});

function errors(told: Partial<Record<ErrorName, string>>): Readonly<Record<string, object>> {
  return Object.fromEntries(
    (Object.entries(told) as [ErrorName, string][]).map(([name, when]) => [
      statusOf(name),
      errorResponse(name, requestIdHeader, when),
    ]),
  );
}
