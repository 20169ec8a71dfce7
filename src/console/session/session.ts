import { computed, signal } from "@preact/signals";
import { api, got, type Schemas, signWith } from "../api/client.ts";
import { ApiProblem } from "../api/problem.ts";

/** A token of the API, and when it ends by this machine's clock. */
export interface Token {
  readonly text: string;
  readonly endsAtMs: number;
}

/** Gets a token anew, by what the person has signed in with. */
export type Renew = () => Promise<Token>;

type State =
  /** `why`: what ended the session before. */
  { readonly is: "out"; readonly why?: string } | { readonly is: "in"; readonly who: Schemas["Whoami"] };

/** All of it is gone with the page: neither keys nor tokens are written anywhere. */
const state = signal<State>({ is: "out" });
let token: Token | undefined;
let renew: Renew | undefined;
let renewing: Promise<Token> | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

export const session = state as { readonly value: State };

/** The caller. Views are shown to who is signed in only. */
export const who = computed(() => {
  const { value } = state;
  if (value.is === "out") throw new Error("nobody is signed in");
  return value.who;
});

/** Whether the caller may do that: `apps.write`. For what is shown only; the API decides. */
export function may(permission: string): boolean {
  const { value } = state;
  return (
    value.is === "in" && (value.who.permissions.includes("*") || value.who.permissions.includes(permission))
  );
}

/** So long before its end a token is renewed; and so long it waits where that failed. */
const RENEW_BEFORE_MS = 120_000;
const RETRY_MS = 10_000;

/** A token for an API key, or for an issuer's token. @throws ApiProblem */
export async function exchange(bearer: string, organizationId?: string): Promise<Token> {
  const askedAtMs = Date.now();
  const { accessToken, expiresIn } = await got(
    api.POST("/auth/tokens", {
      headers: { authorization: `Bearer ${bearer}` },
      body: organizationId === undefined ? {} : { organizationId },
    }),
  );
  return { text: accessToken, endsAtMs: askedAtMs + expiresIn * 1_000 };
}

/** @throws ApiProblem */
export async function signIn(by: Renew): Promise<void> {
  const first = await by();
  const told = await got(api.GET("/auth/whoami", { headers: { authorization: `Bearer ${first.text}` } }));
  renew = by;
  hold(first);
  state.value = { is: "in", who: told };
}

export const signInWithKey = (key: string): Promise<void> => signIn(() => exchange(key));

export function signOut(why?: string): void {
  clearTimeout(timer);
  token = undefined;
  renew = undefined;
  renewing = undefined;
  state.value = why === undefined ? { is: "out" } : { is: "out", why };
}

function hold(next: Token): void {
  token = next;
  clearTimeout(timer);
  timer = setTimeout(() => void renewNow(), Math.max(1_000, next.endsAtMs - Date.now() - RENEW_BEFORE_MS));
}

/** One renewal at a time. What cannot be renewed for good ends the session; what only fails is tried until the token ends. */
async function renewNow(): Promise<void> {
  if (renew === undefined) return;
  const by = renew;
  renewing ??= by();
  try {
    const next = await renewing;
    if (renew === by) hold(next);
  } catch (error) {
    if (renew !== by) return;
    const isFinal = error instanceof ApiProblem && [400, 401, 403, 404].includes(error.status);
    const isOver = token === undefined || token.endsAtMs <= Date.now();
    if (isFinal) signOut(error.message);
    else if (isOver) signOut("The sign-in could not be renewed: the gateway gave no answer.");
    else timer = setTimeout(() => void renewNow(), RETRY_MS);
  } finally {
    renewing = undefined;
  }
}

signWith({
  async token() {
    // The machine may have slept past the timer.
    if (token !== undefined && token.endsAtMs - Date.now() < RETRY_MS) await renewNow();
    return token?.text;
  },
  refused(message) {
    if (state.value.is === "in") signOut(message);
  },
});
