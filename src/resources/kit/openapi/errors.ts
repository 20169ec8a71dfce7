import { z } from "zod";
import { ERROR_CODES, type ErrorCode, MAX_DETAILS, STATUS_OF } from "../../../http/errors.ts";

export const errorSchema = z
  .object({
    code: z.enum(ERROR_CODES),
    message: z.string().meta({
      description: "Explanation for people. The text may change; use `code` in programs.",
    }),
    details: z
      .array(
        z.object({
          path: z.string().meta({ description: "Path of the field, such as `config.dedupe.windowSeconds`." }),
          message: z.string(),
        }),
      )
      .max(MAX_DETAILS)
      .optional(),
  })
  .meta({
    id: "Error",
    description: "An error. `details` names each invalid field.",
    example: { code: "not_found", message: "There is no such blueprint." },
  });

const X_REQUEST_ID = { "X-Request-Id": { $ref: "#/components/headers/XRequestId" } };
export const COMMON_HEADERS = {
  ...X_REQUEST_ID,
  "RateLimit-Limit": { $ref: "#/components/headers/RateLimitLimit" },
  "RateLimit-Remaining": { $ref: "#/components/headers/RateLimitRemaining" },
  "RateLimit-Reset": { $ref: "#/components/headers/RateLimitReset" },
};

/** Error responses of the API, keyed by the name of their component in the OpenAPI document. */
const ERRORS = {
  InvalidParameters: [
    "invalid_parameters",
    "The body or the query is invalid. `details` names the invalid fields, up to 100 of them.",
  ],
  Unauthenticated: ["unauthenticated", "The token is missing, malformed, expired or revoked."],
  PermissionDenied: [
    "permission_denied",
    "The caller lacks a permission or has no organization. `message` says which.",
  ],
  NotFound: ["not_found", "The resource does not exist or belongs to another organization."],
  MethodNotAllowed: [
    "method_not_allowed",
    "The path does not support this method. `Allow` lists the supported methods.",
  ],
  Conflict: [
    "conflict",
    "A unique value is already taken, or the current state does not allow the operation.",
  ],
  PayloadTooLarge: ["payload_too_large", "The body is too large."],
  UnsupportedMediaType: ["unsupported_media_type", "The media type of the body is not supported."],
  RateLimited: ["rate_limited", "Too many requests. Try again after `Retry-After` seconds."],
  Internal: ["internal", "Inlet failed to process the request because of an internal error."],
  Unavailable: [
    "unavailable",
    "A service that Inlet depends on is unavailable. Try again after `Retry-After` seconds.",
  ],
} as const satisfies Readonly<Record<string, readonly [ErrorCode, string]>>;
export type ErrorName = keyof typeof ERRORS;

export const statusOf = (name: ErrorName): string => String(STATUS_OF[ERRORS[name][0]]);

const retryAfter = { "Retry-After": { $ref: "#/components/headers/RetryAfter" } };
const OWN_HEADERS: Partial<Record<ErrorName, object>> = {
  Unauthenticated: {
    "WWW-Authenticate": { description: "`Bearer` (RFC 6750).", schema: { type: "string" } },
  },
  MethodNotAllowed: {
    Allow: {
      required: true,
      description: "The methods that the path supports.",
      schema: { type: "string" },
      example: "GET, HEAD",
    },
  },
  RateLimited: retryAfter,
  Unavailable: retryAfter,
};

/** Response Object of OpenAPI 3.1 (section 4.8.17). */
export interface ResponseObject {
  readonly description: string;
  readonly headers: object;
  readonly content: Readonly<Record<string, object>>;
}

/** Returns a `$ref` to an error response's component. `when` replaces the description of the component. */
export const referToError = (name: ErrorName, when?: string): object => ({
  $ref: `#/components/responses/${name}`,
  ...(when === undefined ? {} : { description: sentence(when) }),
});

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** Creates an error response for the OpenAPI document. `when` replaces the default description. */
export function errorResponse(name: ErrorName, headers: object, when?: string): ResponseObject {
  const [code, description] = ERRORS[name];
  const message = description.replaceAll("`", "");
  return {
    description: when === undefined ? description : sentence(when),
    headers: { ...headers, ...OWN_HEADERS[name] },
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/Error" },
        example: { code, message },
      },
    },
  };
}

/** Creates components for the error responses to which `paths` refers. */
export function errorComponents(paths: object): Readonly<Record<string, object>> {
  const text = JSON.stringify(paths);
  return Object.fromEntries(
    (Object.keys(ERRORS) as ErrorName[])
      .filter((name) => text.includes(`"#/components/responses/${name}"`))
      .map((name) => [name, errorResponse(name, COMMON_HEADERS)]),
  );
}
