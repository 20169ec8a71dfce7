import { z } from "zod";
import type { Caller } from "../../../http/context.ts";
import { invalidParameters } from "../../../http/errors.ts";
import { getConnectionKind } from "../../../net/connections/kinds.ts";
import { type CredentialsOf, NeedsReauthError, OriginNotAllowedError } from "../../../net/credentials.ts";
import { type Outbound, OutboundError } from "../../../net/outbound.ts";
import { CONNECTIONS, getRow } from "../../kit/references.ts";
import type { ConnectionStoreDeps } from "./queries.ts";

export interface TestConnectionDeps extends ConnectionStoreDeps {
  readonly outbound: Pick<Outbound, "request">;
  readonly credentialsOf: CredentialsOf;
}

const LIMITS = { totalTimeoutMs: 15_000, maxBytes: 1024 * 1024 } as const;

export const connectionTestInput = z.strictObject({
  url: z.string().max(2_048).optional().meta({
    description:
      "URL to request with GET. Must be within the allowed origins. By default, a connection that obtains tokens only requests a token, and any other connection requests its first allowed origin.",
    example: "https://api.example.com/me",
  }),
});

export const connectionTestSchema = z
  .object({
    ok: z
      .boolean()
      .describe(
        "Whether the credentials work: a token was issued, or the response status is not 401 or 403.",
      ),
    status: z.int().nullable().describe("Status of the response. Null if there was no response."),
    code: z
      .string()
      .nullable()
      .describe(
        "Reason for a missing response: `needsReauth` or a network error. Null if the request succeeded.",
      ),
    message: z.string().nullable(),
  })
  .meta({ id: "ConnectionTest", description: "Result of testing a connection." });
export type ConnectionTest = z.output<typeof connectionTestSchema>;

/**
 * Sends a test request with the connection's credentials, and never returns the response body.
 * @throws ApiError 404 if the connection does not exist; 400 if the URL is outside the allowed origins
 */
export async function testConnection(
  { db, outbound, credentialsOf }: TestConnectionDeps,
  caller: Caller,
  id: string,
  { url, signal }: { readonly url: string | undefined; readonly signal: AbortSignal },
): Promise<ConnectionTest> {
  const row = await getRow(db, caller, CONNECTIONS, id);
  const target = url ?? `${row.allowedOrigins[0]}/`;
  try {
    const request = { method: "GET", url: target, headers: {} };
    const authorized = await credentialsOf(id).authorize(request, { signal });
    if (url === undefined && getConnectionKind(row.kind).issuesTokens) {
      return { ok: true, status: null, code: null, message: null };
    }
    const { status } = await outbound.request(authorized.request, { ...LIMITS, signal });
    return { ok: status !== 401 && status !== 403, status, code: null, message: null };
  } catch (error) {
    if (error instanceof OriginNotAllowedError) {
      throw invalidParameters([{ path: "url", message: "must be within the connection's allowedOrigins" }]);
    }
    if (error instanceof NeedsReauthError) return failed("needsReauth", error.message);
    if (error instanceof OutboundError) return failed(error.code, error.message);
    throw error;
  }
}

const failed = (code: string, message: string): ConnectionTest => ({
  ok: false,
  status: null,
  code,
  message,
});
