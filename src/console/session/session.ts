import { computed, signal } from "@preact/signals";
import { ApiError } from "../api/api-error.ts";
import { api, type Schemas, setSigner } from "../api/client.ts";

/** Access token with its expiry, according to this machine's clock. */
export interface Token {
  readonly text: string;
  readonly expiresAtMs: number;
}

/** Gets a new access token by sending the credential with which the user signed in. */
export type Renew = () => Promise<Token>;

type State =
  /** Whether the user is signed in. `why` says why the previous session ended. */
  { readonly is: "out"; readonly why?: string } | { readonly is: "in"; readonly who: Schemas["Whoami"] };

/** Session state, in memory only. Keys and tokens are never stored, so closing the page signs the user out. */
const state = signal<State>({ is: "out" });
let token: Token | undefined;
let renew: Renew | undefined;
let renewing: Promise<Token> | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

export const session = state as { readonly value: State };

/** The signed-in caller. Throws if the user is signed out, so use it only in views, which require a sign-in. */
export const caller = computed(() => {
  const { value } = state;
  if (value.is === "out") throw new Error("the user is not signed in");
  return value.who;
});

/** Returns whether the caller has a permission such as `apps.write`. For display only, because the API enforces permissions. */
export function hasPermission(permission: string): boolean {
  const { value } = state;
  return (
    value.is === "in" && (value.who.permissions.includes("*") || value.who.permissions.includes(permission))
  );
}

/** Time before the expiry at which a token is renewed, in ms. */
const RENEW_BEFORE_MS = 120_000;
const RETRY_MS = 10_000;

/** Exchanges an API key or an issuer's token for an access token. @throws ApiError if the API rejects the exchange */
export async function exchange(bearer: string, organizationId?: string): Promise<Token> {
  const askedAtMs = Date.now();
  const { accessToken, expiresIn } = await api.post("/auth/tokens", {
    headers: { authorization: `Bearer ${bearer}` },
    body: organizationId === undefined ? {} : { organizationId },
  });
  return { text: accessToken, expiresAtMs: askedAtMs + expiresIn * 1_000 };
}

/** Signs the user in. `by` returns a token, and is called again whenever the token must be renewed. @throws ApiError */
export async function signIn(by: Renew): Promise<void> {
  const first = await by();
  const whoami = await api.get("/auth/whoami", { headers: { authorization: `Bearer ${first.text}` } });
  renew = by;
  storeToken(first);
  state.value = { is: "in", who: whoami };
}

export const signInWithKey = (key: string): Promise<void> => signIn(() => exchange(key));

export function signOut(why?: string): void {
  clearTimeout(timer);
  token = undefined;
  renew = undefined;
  renewing = undefined;
  state.value = why === undefined ? { is: "out" } : { is: "out", why };
}

function storeToken(next: Token): void {
  token = next;
  clearTimeout(timer);
  timer = setTimeout(() => void renewNow(), Math.max(1_000, next.expiresAtMs - Date.now() - RENEW_BEFORE_MS));
}

/**
 * Renews the token, one request at a time. Responses 400, 401, 403 and 404 end the session, and other failures are
 * retried until the token expires.
 */
async function renewNow(): Promise<void> {
  if (renew === undefined) return;
  const by = renew;
  renewing ??= by();
  try {
    const next = await renewing;
    if (renew === by) storeToken(next);
  } catch (error) {
    if (renew !== by) return;
    const isFinal = error instanceof ApiError && [400, 401, 403, 404].includes(error.status);
    const isExpired = token === undefined || token.expiresAtMs <= Date.now();
    if (isFinal) signOut(error.message);
    else if (isExpired) signOut("The sign-in could not be renewed, because the gateway did not respond.");
    else timer = setTimeout(() => void renewNow(), RETRY_MS);
  } finally {
    renewing = undefined;
  }
}

setSigner({
  async token() {
    // The token may have expired, because timers do not run while the machine sleeps.
    if (token !== undefined && token.expiresAtMs - Date.now() < RETRY_MS) await renewNow();
    return token?.text;
  },
  onRejected(message) {
    if (state.value.is === "in") signOut(message);
  },
});
