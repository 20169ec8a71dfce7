import { z } from "zod";
import type { Caller } from "../../../http/context.ts";
import { invalidParameters } from "../../../http/problem.ts";
import { getConnectionKind } from "../../../net/connections/kinds.ts";
import { type CredentialsOf, NeedsReauthError, OriginNotAllowedError } from "../../../net/credentials.ts";
import { type Outbound, OutboundError } from "../../../net/outbound.ts";
import { CONNECTIONS, getRow } from "../../kit/references.ts";
import type { ConnectionStoreDeps } from "./queries.ts";

export interface TryDeps extends ConnectionStoreDeps {
  readonly outbound: Pick<Outbound, "request">;
  readonly credentialsOf: CredentialsOf;
}

const LIMITS = { totalTimeoutMs: 15_000, maxBytes: 1024 * 1024 } as const;

export const tryInput = z.strictObject({
  url: z.string().max(2_048).optional().meta({
    description:
      "What to GET with the credentials, within the allowed origins. Default: where tokens are issued, only a token is had; else the first allowed origin.",
    example: "https://api.example.com/me",
  }),
});

export const triedSchema = z
  .object({
    ok: z
      .boolean()
      .describe("The credentials were accepted: a token was issued, or the answer is not a 401 or 403."),
    status: z.int().nullable().describe("Of the answer, where something was called."),
    code: z
      .string()
      .nullable()
      .describe("Why there is no answer: `needsReauth`, or what went wrong with the call."),
    message: z.string().nullable(),
  })
  .meta({ id: "ConnectionTest", description: "Whether a connection works." });
export type Tried = z.output<typeof triedSchema>;

/** Uses the connection once. The answer's body is told to nobody. @throws ApiError 400 for a url that is not allowed, 404 */
export async function tryConnection(
  { db, outbound, credentialsOf }: TryDeps,
  caller: Caller,
  id: string,
  { url, signal }: { readonly url: string | undefined; readonly signal: AbortSignal },
): Promise<Tried> {
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
      throw invalidParameters([{ path: "url", message: "is outside the allowed origins" }]);
    }
    if (error instanceof NeedsReauthError) return failed("needsReauth", error.message);
    if (error instanceof OutboundError) return failed(error.code, error.message);
    throw error;
  }
}

const failed = (code: string, message: string): Tried => ({ ok: false, status: null, code, message });
