const text = (description: string, example: string, pattern?: string) => ({
  description,
  schema: { type: "string", ...(pattern === undefined ? {} : { pattern }) },
  example,
});
const always = <T extends object>(header: T) => ({ required: true, ...header });
const count = (description: string, example: number) => ({
  description,
  schema: { type: "integer", minimum: 0 },
  example,
});

/** Response headers. */
export const HEADERS = {
  XRequestId: always(
    text("Id of the request. Log entries about the request contain it.", "req_01jc9x2k4v8m3n5p7q9r1s0"),
  ),
  XTotalCount: always(count("Number of items in the complete list.", 1)),
  XNextCursor: text(
    "Value of the parameter `cursor` for the next page. Absent on the last page.",
    "1769851800000.del_01jc9x2k4v8m3n5p7q9r1s0",
  ),
  XScannedCount: always(
    count("Number of items that were skipped or read for this page, including those that do not match.", 1),
  ),
  ETag: always(text("Version of the returned resource.", '"bp_01jc9x2k4v8m3n5p7q9r1s0.3"')),
  IdempotentReplayed: {
    description: "Present when the response repeats that of the first request with this `Idempotency-Key`.",
    schema: { const: "true" },
  },
  RetryAfter: always(count("Seconds to wait before trying again.", 1)),
  RateLimitLimit: always(count("Number of requests that the API key may send per time window.", 600)),
  RateLimitRemaining: always(count("Number of requests left in the current window.", 599)),
  RateLimitReset: always(count("Seconds until the next window starts.", 42)),
} as const;

/** Request header without an example. API consoles send examples as values, so all users would share one idempotency key. */
const header = (name: string, description: string, pattern?: string) => ({
  name,
  in: "header",
  required: false,
  description,
  schema: { type: "string", ...(pattern === undefined ? {} : { pattern }) },
});

/** Request headers. */
export const PARAMETERS = {
  RequestId: header(
    "X-Request-Id",
    "Id for the request. By default, Inlet generates one.",
    "^[A-Za-z0-9_.:-]{1,128}$",
  ),
  OrganizationId: header(
    "X-Organization-Id",
    "Organization of the request. Only needed for an OpenID Connect token without an organization claim. All other tokens already belong to one organization.",
  ),
  IdempotencyKey: header(
    "Idempotency-Key",
    "For 24 hours, Inlet does not run the same request with the same key again. It returns the first response with " +
      "`Idempotent-Replayed: true`. This applies to successes and to errors below 500, except those of the " +
      "token, permission and parameter checks. The response is 409 if the key was used for a different request, " +
      "if the first request is still running, or if its result is unknown.",
    "^[\\x21-\\x7e]{1,255}$",
  ),
  IfMatch: header(
    "If-Match",
    "Runs the operation only if the resource still has this version (`ETag`). Otherwise returns 409.",
  ),
  IfNoneMatch: header(
    "If-None-Match",
    "Returns 304 without a body if the resource still has this version (`ETag`).",
  ),
} as const;
