import { createHash } from "node:crypto";
import type { Context } from "hono";
import type { Queryable } from "../data/database.ts";
import { answerPlace, claimKey, keepAnswer, type NamedRequest, releaseKey } from "../data/idempotency.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import { parseJson } from "../event/parse-json.ts";
import type { Clock } from "../lib/clock.ts";
import { canonicalJson } from "../lib/json/canonical-json.ts";
import type { Log } from "../log.ts";
import type { ApiEnv } from "./context.ts";
import { answerError, conflict, invalidParameters, toApiError } from "./errors.ts";

export interface IdempotencyDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Executes a creating request once per `Idempotency-Key` and repeats the stored response, byte for byte, for every retry. Success and
 * client errors (below 500) are final; after any other failure the request may be retried.
 *
 * If a gateway stops between the action and storing its response, the key stays unfinished and retries receive 409, because executing the
 * action twice would be worse.
 *
 * Responses may contain credentials, so they are stored encrypted. They are returned only to the same API key, because another key of the
 * account may have fewer permissions.
 *
 * @throws ApiError 400 for an invalid key, 409 for a key that was used for another request or whose first request is unfinished
 */
export type DoOnce = (c: Context<ApiEnv>, body: unknown, act: () => Promise<Response>) => Promise<Response>;

const KEY_HEADER = "Idempotency-Key";
const STORED_HEADERS = ["content-type", "etag"];

interface StoredResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function createDoOnce({ db, keyring, clock, log }: IdempotencyDeps): DoOnce {
  return async (c, body, act) => {
    const key = c.req.header(KEY_HEADER);
    if (key === undefined) return act();
    const named = createNamedRequest(c, key, body);
    const place = answerPlace(named);
    const claim = await claimKey(db, named, clock());
    switch (claim.kind) {
      case "first":
        break;
      case "answered":
        return replay(parseJson(keyring.open(claim.sealedAnswer, place)) as StoredResponse);
      case "other":
        throw conflict(`This ${KEY_HEADER} was already used for another request.`);
      case "unfinished":
        throw conflict(`The first request with this ${KEY_HEADER} is not finished.`);
      default:
        return claim satisfies never;
    }
    const response = await finalAnswer(c, act).catch(async (error: unknown) => {
      await releaseKey(db, named).catch((failure: unknown) => logLoss(log, failure));
      throw error;
    });
    const stored: StoredResponse = {
      status: response.status,
      headers: Object.fromEntries([...response.headers].filter(([name]) => STORED_HEADERS.includes(name))),
      body: await response.clone().text(),
    };
    // The action has already been executed, so a failure to store its response is only logged.
    await keepAnswer(db, named, keyring.seal(JSON.stringify(stored), place)).catch((failure: unknown) =>
      logLoss(log, failure),
    );
    return response;
  };
}

const logLoss = (log: Log, error: unknown): void =>
  log.warn(
    { event: "idempotency.answer_not_stored", err: error },
    "response to an idempotent request could not be stored",
  );

function createNamedRequest(c: Context<ApiEnv>, key: string, body: unknown): NamedRequest {
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    const message = "must be 1 to 255 printable ASCII characters without spaces";
    throw invalidParameters([{ path: KEY_HEADER, message }]);
  }
  const { organizationId, accountId, keyId, confinedTo } = c.get("caller");
  const { pathname, search } = new URL(c.req.url);
  const request = createHash("sha256")
    .update(`${keyId}\n${c.req.method} ${pathname}${search}\n${canonicalJson(body)}`)
    .digest();
  // Restricted tokens have separate keys. A client cannot choose such a key, because it contains a space.
  return { organizationId, accountId, key: confinedTo ? `${confinedTo.id} ${key}` : key, request };
}

/** Executes the action and returns its response. Client errors count as a response, and other errors are thrown. */
async function finalAnswer(c: Context, act: () => Promise<Response>): Promise<Response> {
  try {
    return await act();
  } catch (thrown) {
    const response = answerError(c, toApiError(thrown));
    if (response.status >= 500) throw thrown;
    return response;
  }
}

const replay = ({ status, headers, body }: StoredResponse): Response =>
  new Response(body, { status, headers: { ...headers, "Idempotent-Replayed": "true" } });
