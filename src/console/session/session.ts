import { computed, signal } from "@preact/signals";
import { ApiError } from "../api/api-error.ts";
import { api, type Schemas, setSigner, unwrap } from "../api/client.ts";

/** An access token and its expiry by this machine's clock. */
export interface Token {
  readonly text: string;
  readonly expiresAtMs: number;
}

/** Gets a new token with the user's original credential. */
export type Renew = () => Promise<Token>;

type State =
  /** `why` is the reason why the previous session ended. */
  { readonly is: "out"; readonly why?: string } | { readonly is: "in"; readonly who: Schemas["Whoami"] };

/** Kept in memory only. Keys and tokens are never stored, so closing the page ends the session. */
const state = signal<State>({ is: "out" });
let token: Token | undefined;
let renew: Renew | undefined;
let renewing: Promise<Token> | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

export const session = state as { readonly value: State };

/** The signed-in caller. Throws when the user is signed out, so only use it in views, which require a sign-in. */
export const caller = computed(() => {
  const { value } = state;
  if (value.is === "out") throw new Error("the user is not signed in");
  return value.who;
});

/** Returns whether the caller has the permission: `apps.write`. Only for display, because the API enforces permissions. */
export function hasPermission(permission: string): boolean {
  const { value } = state;
  return (
    value.is === "in" && (value.who.permissions.includes("*") || value.who.permissions.includes(permission))
  );
}

/** A token is renewed this long before it expires. */
const RENEW_BEFORE_MS = 120_000;
const RETRY_MS = 10_000;

/** Exchanges an API key or an issuer's token for an access token. @throws ApiError */
export async function exchange(bearer: string, organizationId?: string): Promise<Token> {
  const askedAtMs = Date.now();
  const { accessToken, expiresIn } = await unwrap(
    api.POST("/auth/tokens", {
      headers: { authorization: `Bearer ${bearer}` },
      body: organizationId === undefined ? {} : { organizationId },
    }),
  );
  return { text: accessToken, expiresAtMs: askedAtMs + expiresIn * 1_000 };
}

/**
 * Signs in with a token from `by`, which is called again whenever the token must be renewed.
 * @throws ApiError
 */
export async function signIn(by: Renew): Promise<void> {
  const first = await by();
  const whoami = await unwrap(
    api.GET("/auth/whoami", { headers: { authorization: `Bearer ${first.text}` } }),
  );
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
 * Renews the token, one request at a time. A 400, 401, 403 or 404 ends the session. Other failures are
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
    // Timers do not run while the machine sleeps, so the token may have expired without being renewed.
    if (token !== undefined && token.expiresAtMs - Date.now() < RETRY_MS) await renewNow();
    return token?.text;
  },
  onRejected(message) {
    if (state.value.is === "in") signOut(message);
  },
});
