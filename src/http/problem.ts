import type { Context, Env, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { type Finding, QuotaError, UnavailableError } from "../lib/errors.ts";

/** The error codes of the API. A closed set; the status follows from the code. */
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

/** The body of every answer that is an error. */
export interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: readonly Finding[];
}

/** What a caller is told of what was not done. A value: where refusals come by the thousand, none is made to be thrown. */
export interface ErrorResponse {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: readonly Finding[] | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * An error that is the caller's to read: thrown by a route, answered as it is. Its message never carries internals. It is an answer,
 * and no defect: it has no stack, which would cost a refusal more than all else that is done for it.
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

/** A refusal, to be thrown. */
export const createApiError = (refusal: ErrorResponse): ApiError =>
  new ApiError(refusal.code, refusal.message, refusal);

/** A body of 1 MiB can be wrong in half a million places. */
export const MAX_DETAILS = 100;

/** 400: what was sent does not fit; `details` names each field, the first hundred of them. */
export const invalidParameters = (
  details: readonly Finding[],
  message = "The request does not fit.",
): ApiError => new ApiError("invalid_parameters", message, { details: details.slice(0, MAX_DETAILS) });

/** 404: nothing here, nothing of this organization, or not even an id. */
export const notFound = (what: string): ApiError => new ApiError("not_found", `There is no such ${what}.`);

/** 409: it exists already, or its state forbids it. */
export const conflict = (message: string): ApiError => new ApiError("conflict", message);

/** Any thrown value as the answer that a client may see. What is not ours to tell becomes a bare 500. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof QuotaError) {
    return new ApiError("rate_limited", "Your organization has used up what it may have for now.", {
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
  return new ApiError("internal", "Something went wrong inside Inlet.", { cause: thrown });
}

export const toErrorBody = ({ code, message, details }: ErrorResponse): ErrorBody =>
  details && details.length > 0 ? { code, message, details } : { code, message };

/** RFC 8288, relation `help`: where it stands what the code means, and what to do. */
export const toErrorHeaders = ({ code, headers }: ErrorResponse): Readonly<Record<string, string>> => ({
  link: `</docs/errors#${code}>; rel="help"`,
  ...headers,
});

/** The error as a response. */
export const answerError = (c: Context, error: ApiError): Response =>
  c.json(toErrorBody(error), STATUS_OF[error.code], toErrorHeaders(error));

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Makes every answer of the app that no route gives an error body: unknown paths, other methods, whatever is thrown. */
export function answerErrors<E extends Env>(app: Hono<E>): void {
  app.onError((thrown, c) => answerError(c, toApiError(thrown)));
  app.notFound((c) => {
    const allowed = allowedMethods(app, c.req.path);
    return answerError(c, allowed.length > 0 ? methodNotAllowed(allowed) : notFound("resource"));
  });
}

function methodNotAllowed(allowed: readonly string[]): ApiError {
  return new ApiError("method_not_allowed", "This address does not take that method.", {
    headers: { allow: allowed.join(", ") },
  });
}

/** The methods that have a route of their own at this path; middleware, which takes all, is none. */
function allowedMethods<E extends Env>(app: Hono<E>, path: string): readonly string[] {
  return METHODS.filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method),
  ).flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
}
