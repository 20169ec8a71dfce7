import { isList, isNonJson, type NonJsonAnswer } from "../answer.ts";
import type { MountedRoute } from "../mount.ts";
import {
  COMMON_HEADERS,
  type ErrorName,
  errorResponse,
  type ResponseObject,
  referToError,
  statusOf,
} from "./errors.ts";
import { buildExample } from "./example.ts";
import type { JsonSchema, SchemaWriter } from "./schemas.ts";

/** Converts the path syntax: `/apps/:appId` → `/apps/{appId}`. */
export const documentedPath = ({ path }: Pick<MountedRoute, "path">): string =>
  path.replace(/:([A-Za-z]+)/g, "{$1}");

/**
 * Creates the Operation Object of a route (OpenAPI 3.1, section 4.8.10). `withExamples` later adds examples and removes
 * undefined fields.
 */
export function toOperation(route: MountedRoute, schemas: SchemaWriter): Readonly<Record<string, unknown>> {
  const { method, operation, summary, tag, permission, reveals, confined, isPublic, body } = route;
  return {
    operationId: operation,
    summary,
    description: describe(route),
    tags: [tag],
    security: isPublic ? [] : undefined,
    "x-permission": permission ?? undefined,
    "x-reveals": reveals,
    "x-confined": confined,
    parameters: listParameters(route, schemas),
    requestBody: body && {
      required: !body.safeParse({}).success,
      content: { "application/json": { schema: schemas.input(body, method === "put" ? "patch" : "body") } },
    },
    responses: { "200": success(route, schemas), ...notModified(route), ...failures(route) },
  };
}

function describe({ description, permission, reveals, confined, isPublic }: MountedRoute): string {
  const needs = isPublic
    ? "Requires no token."
    : permission === null
      ? "Requires a token, but no permission."
      : `Requires the permission \`${permission}\`${confined === undefined ? "" : `, or a token that is valid only for this \`${confined}\``}.`;
  const whole =
    reveals === undefined
      ? needs
      : `${needs} Some fields are only returned to callers with the permission \`${reveals}\`.`;
  return description === undefined ? whole : `${description}\n\n${whole}`;
}

const writes = ({ method }: MountedRoute): boolean => method === "put" || method === "delete";

function listParameters(route: MountedRoute, schemas: SchemaWriter): readonly object[] {
  const { params, query, creates, versioned, isPublic } = route;
  const inPath = Object.entries(params).map(([name, schema]) =>
    parameter(name, "path", schemas.input(schema), true),
  );
  const asked =
    query && (schemas.input(query) as { properties?: Record<string, JsonSchema>; required?: string[] });
  const inQuery = Object.entries(asked?.properties ?? {}).map(([name, schema]) =>
    parameter(name, "query", schema, asked?.required?.includes(name) === true),
  );
  const headers = [
    "RequestId",
    ...(isPublic ? [] : ["OrganizationId"]),
    ...(creates ? ["IdempotencyKey"] : []),
    ...(versioned && writes(route) ? ["IfMatch"] : []),
    ...(versioned && route.method === "get" ? ["IfNoneMatch"] : []),
  ];
  return [...inPath, ...inQuery, ...headers.map((name) => ({ $ref: `#/components/parameters/${name}` }))];
}

function parameter(name: string, where: "path" | "query", schema: JsonSchema, required: boolean): object {
  const { description, ...rest } = schema;
  return { name, in: where, required, description, schema: rest };
}

function success(route: MountedRoute, schemas: SchemaWriter): object {
  const { answer, versioned, creates, method } = route;
  const headers = {
    ...COMMON_HEADERS,
    ...(isList(answer) ? { "X-Total-Count": { $ref: "#/components/headers/XTotalCount" } } : {}),
    ...(isList(answer) && answer.hasCursor
      ? { "X-Next-Cursor": { $ref: "#/components/headers/XNextCursor" } }
      : {}),
    ...(isList(answer) && answer.isScanned
      ? { "X-Scanned-Count": { $ref: "#/components/headers/XScannedCount" } }
      : {}),
    ...(creates ? { "Idempotent-Replayed": { $ref: "#/components/headers/IdempotentReplayed" } } : {}),
    ...(versioned && method !== "delete" ? { ETag: { $ref: "#/components/headers/ETag" } } : {}),
  };
  if (isNonJson(answer)) {
    return otherResponse(answer, answer.description, headers);
  }
  const schema = isList(answer)
    ? { type: "array", items: schemas.output(answer.of) }
    : schemas.output(answer);
  return { description: "Success.", headers, content: { "application/json": { schema } } };
}

const otherResponse = (
  { contentType }: NonJsonAnswer,
  description: string,
  headers: object,
): ResponseObject => ({
  description,
  headers,
  content: { [contentType]: { schema: { type: "string" } } },
});

const notModified = ({ method, versioned }: MountedRoute): object =>
  versioned && method === "get"
    ? { "304": { description: "The client already has this version.", headers: COMMON_HEADERS } }
    : {};

function failures(route: MountedRoute): Readonly<Record<string, object>> {
  const { body, params, isPublic, missing, conflict, creates, versioned, answer } = route;
  const conflicts = [
    ...(conflict === undefined ? [] : [conflict]),
    ...(creates
      ? ["the `Idempotency-Key` was used for another request, or its first request is still running"]
      : []),
    ...(versioned && writes(route) ? ["`If-Match` does not match the current version"] : []),
  ];
  const names: (ErrorName | false)[] = [
    // Every operation rejects unknown query parameters.
    "InvalidParameters",
    !isPublic && "Unauthenticated",
    !isPublic && "PermissionDenied",
    (Object.keys(params).length > 0 || missing !== undefined) && "NotFound",
    conflicts.length > 0 && "Conflict",
    body !== undefined && "PayloadTooLarge",
    body !== undefined && "UnsupportedMediaType",
    "RateLimited",
    "Internal",
    "Unavailable",
  ];
  const descriptions: Partial<Record<ErrorName, string>> = {
    ...(missing === undefined ? {} : { NotFound: missing }),
    ...(conflicts.length === 0 ? {} : { Conflict: conflicts.join("; or ") }),
  };
  return Object.fromEntries([
    ...names
      .filter((name) => name !== false)
      .map((name) => [statusOf(name), referToError(name, descriptions[name])]),
    ...(isNonJson(answer) && answer.refusal !== undefined ? [["400", badRequestResponse(answer)]] : []),
  ]);
}

/** Documents the two bodies of a 400 response: JSON if a check fails, and the route's own content type if the handler fails. */
function badRequestResponse(answer: NonJsonAnswer) {
  const own = otherResponse(answer, answer.refusal ?? "", COMMON_HEADERS);
  const { content } = errorResponse("InvalidParameters", COMMON_HEADERS);
  return { ...own, content: { ...content, ...own.content } };
}

/** Adds an example to each JSON body that has none. */
export function withExamples<T>(part: T, components: Readonly<Record<string, JsonSchema>>): T {
  return JSON.parse(JSON.stringify(part), (key, value) =>
    key === "application/json" && value?.schema && !("example" in value)
      ? { ...value, example: buildExample(value.schema, components) }
      : value,
  );
}
