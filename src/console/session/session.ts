import { computed, signal } from "@preact/signals";
import { ApiError } from "../api/api-error.ts";
import { api, type Schemas, setSigner } from "../api/client.ts";
import {
  forgetSession,
  readSession,
  requestSession,
  type SharedSession,
  shareSession,
  signOutTabs,
  storeSession,
  type Token,
  watchTabs,
} from "./tabs.ts";

/** Gets a new access token by sending the credential with which the user signed in. */
export type Renew = () => Promise<Token>;

type State =
  /** The console is looking for the session of an earlier page or of another tab. */
  | { readonly is: "opening" }
  /** The user is signed out. `why` says why the previous session ended. */
  | { readonly is: "out"; readonly why?: string }
  | { readonly is: "in"; readonly who: Schemas["Whoami"] };

const state = signal<State>({ is: "opening" });
let current: SharedSession | undefined;
/** Credential of the sign-in, in memory only. `undefined` in all tabs except the one in which the user signed in. */
let credential: Renew | undefined;
let renewing: Promise<void> | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

export const session = state as { readonly value: State };

/** The signed-in caller. Throws if the user is signed out, so use it only in views, which require a sign-in. */
export const caller = computed(() => {
  const { value } = state;
  if (value.is !== "in") throw new Error("the user is not signed in");
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
/** Tabs renew at slightly different times, so that usually one of them renews the token for all. */
const MAX_JITTER_MS = 60_000;
const RETRY_MS = 10_000;
const SIGN_IN_MS = 12 * 60 * 60_000;
/** Time to wait for the session of another tab before the sign-in form is shown. A later session still signs the user in. */
const OTHER_TABS_MS = 250;

/** Exchanges an API key, an issuer's token or an access token for a new access token. @throws ApiError if the API rejects the exchange */
export async function exchange(bearer: string, organizationId?: string): Promise<Token> {
  const askedAtMs = Date.now();
  const { accessToken, expiresIn } = await api.post("/auth/tokens", {
    headers: { authorization: `Bearer ${bearer}` },
    body: organizationId === undefined ? {} : { organizationId },
  });
  return { text: accessToken, expiresAtMs: askedAtMs + expiresIn * 1_000 };
}

/** Signs the user in. `by` returns a token, and is called again if the token expires while the machine sleeps. @throws ApiError */
export async function signIn(by: Renew): Promise<void> {
  const token = await by();
  const who = await whoamiOf(token);
  credential = by;
  const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
  enter({ id, signedInAtMs: Date.now(), token }, who);
  share();
}

export const signInWithKey = (key: string): Promise<void> => signIn(() => exchange(key));

/** Signs the user out in all tabs. */
export function signOut(why?: string): void {
  signOutTabs(why);
  leave(why);
}

/** Continues the session of this tab before a reload, or of another tab. Shows the sign-in form if there is none. */
export function openSession(): void {
  watchTabs({ current: () => current, onSession: (shared) => void adopt(shared), onSignOut: leave });
  const stored = readSession();
  if (stored !== undefined) {
    void adopt(stored);
    return;
  }
  requestSession();
  setTimeout(() => {
    if (current === undefined && state.value.is === "opening") leave();
  }, OTHER_TABS_MS);
}

/** Takes over a session that was stored by this tab or sent by another tab. The latest sign-in applies to all tabs. */
async function adopt(shared: SharedSession): Promise<void> {
  if (current?.id === shared.id) {
    if (shared.token.expiresAtMs > current.token.expiresAtMs) use(shared);
    return;
  }
  if (current !== undefined) {
    if (shared.signedInAtMs < current.signedInAtMs) return;
    // The views show data of the earlier sign-in. Leaving it first mounts them again.
    leave();
  }
  use(shared);
  try {
    const who = await whoamiOf(shared.token);
    if (current?.id === shared.id) enter(current, who);
  } catch (error) {
    if (current?.id !== shared.id) return;
    leave(error instanceof Error ? error.message : String(error));
    // If the gateway did not decide, a reload tries again.
    if (!isFinal(error)) storeSession(shared);
  }
}

const whoamiOf = (token: Token): Promise<Schemas["Whoami"]> =>
  api.get("/auth/whoami", { headers: { authorization: `Bearer ${token.text}` } });

function enter(shared: SharedSession, who: Schemas["Whoami"]): void {
  use(shared);
  state.value = { is: "in", who };
}

/** Signs the user out in this tab. */
function leave(why?: string): void {
  clearTimeout(timer);
  forgetSession();
  current = undefined;
  credential = undefined;
  state.value = why === undefined ? { is: "out" } : { is: "out", why };
}

/** Stores the session and schedules the renewal of its token. */
function use(shared: SharedSession): void {
  current = shared;
  storeSession(shared);
  clearTimeout(timer);
  const delayMs = shared.token.expiresAtMs - Date.now() - RENEW_BEFORE_MS - Math.random() * MAX_JITTER_MS;
  timer = setTimeout(() => void renew(), Math.max(1_000, delayMs));
}

function share(): void {
  if (current !== undefined) shareSession(current);
}

/** Renews the token, one request at a time. */
function renew(): Promise<void> {
  renewing ??= renewNow().finally(() => {
    renewing = undefined;
  });
  return renewing;
}

/** Final responses end the session in all tabs. Other failures are retried until the token expires. */
async function renewNow(): Promise<void> {
  if (current === undefined) return;
  const { id, signedInAtMs, token: used } = current;
  const isExpired = (): boolean => used.expiresAtMs <= Date.now();
  let by: Renew | undefined = () => exchange(used.text);
  // Timers do not run while the machine sleeps, so the token may have expired. Then only the credential gets a new one.
  if (isExpired()) by = Date.now() < signedInAtMs + SIGN_IN_MS ? credential : undefined;
  if (by === undefined) return askOtherTabs(used);
  try {
    const token = await by();
    if (current?.id !== id) return;
    use({ id, signedInAtMs, token });
    share();
  } catch (error) {
    if (current?.id !== id || current.token !== used) return;
    if (isFinal(error)) signOut(error.message);
    else if (isExpired()) signOut("The sign-in could not be renewed, because the gateway did not respond.");
    else timer = setTimeout(() => void renew(), RETRY_MS);
  }
}

/** Asks the other tabs for a newer token, and signs out only this tab if there is none. */
async function askOtherTabs(used: Token): Promise<void> {
  requestSession();
  await new Promise((resolve) => setTimeout(resolve, OTHER_TABS_MS));
  if (current?.token === used) leave("The sign-in has expired.");
}

/** Returns whether the API rejected the credential itself, so that another attempt cannot succeed. */
const isFinal = (error: unknown): error is ApiError =>
  error instanceof ApiError && [400, 401, 403, 404].includes(error.status);

setSigner({
  async token() {
    // The token may have expired, because timers do not run while the machine sleeps.
    if (current !== undefined && current.token.expiresAtMs - Date.now() < RETRY_MS) await renew();
    return current?.token.text;
  },
  onRejected(message) {
    if (state.value.is === "in") signOut(message);
  },
});
