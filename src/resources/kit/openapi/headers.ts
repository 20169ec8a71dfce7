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

/** Headers of answers. */
export const HEADERS = {
  XRequestId: always(text("Names the request; it stands in the log too.", "req_01jc9x2k4v8m3n5p7q9r1s0")),
  XTotalCount: always(count("How many there are in all.", 1)),
  ETag: always(text("The version of what is answered.", '"bp_01jc9x2k4v8m3n5p7q9r1s0.3"')),
  IdempotentReplayed: {
    description: "The answer is the one that the first request of this `Idempotency-Key` had.",
    schema: { const: "true" },
  },
  RetryAfter: always(count("Seconds after which it is worth trying again.", 1)),
  RateLimitLimit: always(count("Requests that the key has in a window.", 600)),
  RateLimitRemaining: always(count("Requests that are left in this one.", 599)),
  RateLimitReset: always(count("Seconds until the next one.", 42)),
} as const;

/** Without an example: pages that try requests out fill it in and send it, and a key of all is nobody's key. */
const header = (name: string, description: string, pattern?: string) => ({
  name,
  in: "header",
  required: false,
  description,
  schema: { type: "string", ...(pattern === undefined ? {} : { pattern }) },
});

/** Headers of requests. */
export const PARAMETERS = {
  RequestId: header(
    "X-Request-Id",
    "A name for the request, in place of one that Inlet makes.",
    "^[A-Za-z0-9_.:-]{1,128}$",
  ),
  OrganizationId: header(
    "X-Organization-Id",
    "The organization that the bearer of another issuer's token calls for, where the token does not say. Any other token calls for its own.",
  ),
  IdempotencyKey: header(
    "Idempotency-Key",
    "For 24 hours, the same request with the same key is not done again but answered as it was the first time, " +
      "with `Idempotent-Replayed: true`: successes, and errors below 500 that its checks did not find beforehand. " +
      "With another request, or while the first one is under way, it is a 409; so it is when nobody knows what became " +
      "of the first one.",
    "^[\\x21-\\x7e]{1,255}$",
  ),
  IfMatch: header("If-Match", "Does it only if this is the version (`ETag`) that is there; else 409."),
  IfNoneMatch: header("If-None-Match", "Answers 304, without a body, if this is the version that is there."),
} as const;
