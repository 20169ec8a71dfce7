import { z } from "zod";
import { ERROR_CODES, type ErrorCode, MAX_DETAILS, STATUS_OF } from "../../../http/problem.ts";

/** The body of every answer that is an error. */
export const errorSchema = z
  .object({
    code: z.enum(ERROR_CODES),
    message: z.string().meta({ description: "For a person to read; it may change." }),
    details: z
      .array(
        z.object({
          path: z.string().meta({ description: "The field: `config.dedupe.windowSeconds`." }),
          message: z.string(),
        }),
      )
      .max(MAX_DETAILS)
      .optional(),
  })
  .meta({
    id: "Error",
    description: "What went wrong. `details` names each field that does not fit.",
    example: { code: "not_found", message: "There is no such blueprint." },
  });

const X_REQUEST_ID = { "X-Request-Id": { $ref: "#/components/headers/XRequestId" } };
export const COMMON_HEADERS = {
  ...X_REQUEST_ID,
  "RateLimit-Limit": { $ref: "#/components/headers/RateLimitLimit" },
  "RateLimit-Remaining": { $ref: "#/components/headers/RateLimitRemaining" },
  "RateLimit-Reset": { $ref: "#/components/headers/RateLimitReset" },
};

/** The error answers by their component's name. */
const ERRORS = {
  InvalidParameters: [
    "invalid_parameters",
    "Body or query do not fit; `details` names each field, the first hundred of them.",
  ],
  Unauthenticated: ["unauthenticated", "The token is missing, malformed, expired or revoked."],
  PermissionDenied: [
    "permission_denied",
    "The caller lacks what `message` names: a permission, or an organization.",
  ],
  NotFound: ["not_found", "There is no such thing here; one of another organization is none."],
  MethodNotAllowed: [
    "method_not_allowed",
    "The address does not take that method; `Allow` names those that it takes.",
  ],
  Conflict: ["conflict", "Something unique exists already, or the state forbids it."],
  PayloadTooLarge: ["payload_too_large", "The body is too large."],
  UnsupportedMediaType: ["unsupported_media_type", "The body is not of a media type that is understood."],
  RateLimited: ["rate_limited", "Too many requests; try again after `Retry-After` seconds."],
  Internal: ["internal", "Inlet failed to process the request because of an internal error."],
  Unavailable: ["unavailable", "What Inlet depends on is away; try again after `Retry-After` seconds."],
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
      description: "The methods that it takes.",
      schema: { type: "string" },
      example: "GET, HEAD",
    },
  },
  RateLimited: retryAfter,
  Unavailable: retryAfter,
};

/** A response of OpenAPI 3.1 (section 4.8.17). */
export interface ResponseObject {
  readonly description: string;
  readonly headers: object;
  readonly content: Readonly<Record<string, object>>;
}

/** The answer as a component that is referred to; `when` stands in place of what it says of itself. */
export const referToError = (name: ErrorName, when?: string): object => ({
  $ref: `#/components/responses/${name}`,
  ...(when === undefined ? {} : { description: sentence(when) }),
});

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** The answer as an object of the document; `when` says more than what the error is about in general. */
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

/** Those that the paths refer to. */
export function errorComponents(paths: object): Readonly<Record<string, object>> {
  const text = JSON.stringify(paths);
  return Object.fromEntries(
    (Object.keys(ERRORS) as ErrorName[])
      .filter((name) => text.includes(`"#/components/responses/${name}"`))
      .map((name) => [name, errorResponse(name, COMMON_HEADERS)]),
  );
}
