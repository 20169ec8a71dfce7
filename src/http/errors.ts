import type { Context, Env, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { type Finding, QuotaError, UnavailableError } from "../lib/errors.ts";

export const STATUS_OF = {
  invalid_parameters: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const satisfies Readonly<Record<string, ContentfulStatusCode>>;
export type ErrorCode = keyof typeof STATUS_OF;
export const ERROR_CODES = Object.keys(STATUS_OF) as readonly ErrorCode[];

export interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: readonly Finding[];
  /** Id of the trace. Only in responses to deliveries that are traced. */
  readonly traceId?: string;
}

/** An error response as a plain value, for hot paths where throwing would cost more than the rejection itself. */
export interface ErrorResponse {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: readonly Finding[] | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * An error that is sent to the client, so its message must not reveal internals. It has no stack trace, because capturing one costs too
 * much CPU time.
 */
export class ApiError extends Error implements ErrorResponse {
  override readonly name = "ApiError";
  readonly code: ErrorCode;
  readonly details: readonly Finding[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      readonly details?: readonly Finding[] | undefined;
      readonly headers?: Readonly<Record<string, string>>;
      readonly cause?: unknown;
    } = {},
  ) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.details = options.details;
    this.headers = options.headers ?? {};
  }
}

export const createApiError = (response: ErrorResponse): ApiError =>
  new ApiError(response.code, response.message, response);

/** Maximum number of details in an error response, because a 1 MiB body can contain half a million errors. */
export const MAX_DETAILS = 100;

/** Returns a 400 error that lists the invalid fields, up to `MAX_DETAILS`. */
export const invalidParameters = (
  details: readonly Finding[],
  message = "The request is invalid.",
): ApiError => new ApiError("invalid_parameters", message, { details: details.slice(0, MAX_DETAILS) });

/** Returns a 404 error. It does not reveal whether the resource exists in another organization. */
export const notFound = (resource: string): ApiError =>
  new ApiError("not_found", `There is no such ${resource}.`);

/** Returns a 409 error, because the resource already exists or its state does not allow the request. */
export const conflict = (message: string): ApiError => new ApiError("conflict", message);

/** Converts any thrown value to an error response. Unexpected errors become a 500 that reveals no details. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof QuotaError) {
    return new ApiError("rate_limited", "Your organization has used up its quota. Try again later.", {
      headers: { "retry-after": String(thrown.retryAfterSeconds) },
      cause: thrown,
    });
  }
  if (thrown instanceof UnavailableError) {
    return new ApiError("unavailable", "Inlet cannot process this request at the moment. Try again.", {
      headers: { "retry-after": String(thrown.retryAfterSeconds) },
      cause: thrown,
    });
  }
  if (thrown instanceof HTTPException && thrown.status < 500) {
    return new ApiError("invalid_parameters", "The request cannot be read.", { cause: thrown });
  }
  return new ApiError("internal", "Inlet failed to process the request because of an internal error.", {
    cause: thrown,
  });
}

export const toErrorBody = ({ code, message, details }: ErrorResponse, traceId?: string): ErrorBody => ({
  code,
  message,
  ...(details && details.length > 0 && { details }),
  ...(traceId !== undefined && { traceId }),
});

/** Returns the headers of an error response, with a link to the documentation of its error code (RFC 8288, relation `help`). */
export const toErrorHeaders = ({ code, headers }: ErrorResponse): Readonly<Record<string, string>> => ({
  link: `</docs/errors#${code}>; rel="help"`,
  ...headers,
});

export const answerError = (c: Context, error: ApiError): Response =>
  c.json(toErrorBody(error), STATUS_OF[error.code], toErrorHeaders(error));

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Registers handlers that send an error body for unknown paths, wrong methods and thrown errors. */
export function answerErrors<E extends Env>(app: Hono<E>): void {
  app.onError((thrown, c) => answerError(c, toApiError(thrown)));
  app.notFound((c) => {
    const allowed = allowedMethods(app, c.req.path);
    return answerError(c, allowed.length > 0 ? methodNotAllowed(allowed) : notFound("resource"));
  });
}

function methodNotAllowed(allowed: readonly string[]): ApiError {
  return new ApiError(
    "method_not_allowed",
    "This URL does not support the method of the request. The Allow header lists those that it supports.",
    {
      headers: { allow: allowed.join(", ") },
    },
  );
}

/** Returns the HTTP methods that routes accept for this path. Ignores middleware, because it matches every method. */
function allowedMethods<E extends Env>(app: Hono<E>, path: string): readonly string[] {
  return METHODS.filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method),
  ).flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
}
