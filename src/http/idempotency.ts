import { createHash } from "node:crypto";
import type { Context } from "hono";
import type { Queryable } from "../data/database.ts";
import { answerPlace, claimKey, keepAnswer, type NamedRequest, releaseKey } from "../data/idempotency.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import type { Clock } from "../lib/clock.ts";
import { canonicalJson } from "../lib/json/canonical-json.ts";
import type { Log } from "../log.ts";
import type { ApiEnv } from "./context.ts";
import { answerError, conflict, invalidParameters, toApiError } from "./problem.ts";

export interface IdempotencyDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Does a creating request, unless its `Idempotency-Key` says that it was done: then it is answered as it was the first time, byte
 * for byte. What is kept is final: a success, or what the request itself made fail (below 500). After any other failure it may be
 * sent again. A gateway that dies between doing and keeping leaves a key of which nobody knows: that stays a 409, since
 * doing it twice would be worse. Answers may hold credentials: they are kept sealed, and given to the API key that asked only,
 * since another key of the same account may be allowed less.
 *
 * @throws ApiError 400 for a key that is none, 409 for another request's key, or one whose first request is not finished
 */
export type DoOnce = (c: Context<ApiEnv>, body: unknown, act: () => Promise<Response>) => Promise<Response>;

const KEY_HEADER = "Idempotency-Key";
const KEPT_HEADERS = ["content-type", "etag"];

interface KeptAnswer {
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
        return replay(JSON.parse(keyring.open(claim.sealedAnswer, place)));
      case "other":
        throw conflict(`This ${KEY_HEADER} was used for another request.`);
      case "unfinished":
        throw conflict(`The first request of this ${KEY_HEADER} has no answer yet.`);
      default:
        return claim satisfies never;
    }
    const response = await finalAnswer(c, act).catch(async (error: unknown) => {
      await releaseKey(db, named).catch((failure: unknown) => logLoss(log, failure));
      throw error;
    });
    const kept: KeptAnswer = {
      status: response.status,
      headers: Object.fromEntries([...response.headers].filter(([name]) => KEPT_HEADERS.includes(name))),
      body: await response.clone().text(),
    };
    // It is done, whatever becomes of this.
    await keepAnswer(db, named, keyring.seal(JSON.stringify(kept), place)).catch((failure: unknown) =>
      logLoss(log, failure),
    );
    return response;
  };
}

const logLoss = (log: Log, error: unknown): void =>
  log.warn(
    { event: "idempotency.answer_not_stored", err: error },
    "answer of an idempotent request is not stored",
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
  // Requests with a confined token are named apart from those of the account that has lent it; no key of others has a space.
  return { organizationId, accountId, key: confinedTo ? `${confinedTo.id} ${key}` : key, request };
}

/** The answer, be it an error that the request itself brings about. @throws whatever else goes wrong */
async function finalAnswer(c: Context, act: () => Promise<Response>): Promise<Response> {
  try {
    return await act();
  } catch (thrown) {
    const response = answerError(c, toApiError(thrown));
    if (response.status >= 500) throw thrown;
    return response;
  }
}

const replay = ({ status, headers, body }: KeptAnswer): Response =>
  new Response(body, { status, headers: { ...headers, "Idempotent-Replayed": "true" } });
