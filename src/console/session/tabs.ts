/** Access token with its expiry, according to this machine's clock. */
export interface Token {
  readonly text: string;
  readonly expiresAtMs: number;
}

/** A sign-in that the tabs of this browser share. It never contains an API key or an issuer's token. */
export interface SharedSession {
  /** Random id of the sign-in. Tells two sign-ins in different tabs apart. */
  readonly id: string;
  readonly signedInAtMs: number;
  readonly token: Token;
}

type Message =
  | { readonly is: "request" }
  | { readonly is: "session"; readonly session: SharedSession }
  | { readonly is: "signOut"; readonly why?: string | undefined };

interface TabCallbacks {
  /** Returns the session to hand to a tab that asks for it. `undefined` if this tab is signed out. */
  readonly current: () => SharedSession | undefined;
  readonly onSession: (session: SharedSession) => void;
  readonly onSignOut: (why: string | undefined) => void;
}

const STORAGE_KEY = "inlet.session";
const SIGNED_OUT_KEY = "inlet.signed-out";
/** Only pages of this origin can use the channel. */
const channel = new BroadcastChannel(STORAGE_KEY);

export function watchTabs({ current, onSession, onSignOut }: TabCallbacks): void {
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.is === "session") {
      // The message can arrive after a sign-out of this tab.
      if (!isSignedOut(data.session)) onSession(data.session);
    } else if (data.is === "signOut") onSignOut(data.why);
    else {
      const session = current();
      if (session !== undefined) post({ is: "session", session });
    }
  };
  // Back and Forward restore a page with its memory. The sign-out of another tab may have happened in between.
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted && current() !== undefined && readSession() === undefined) onSignOut(undefined);
  });
}

/** Asks the other tabs for their session. They respond with `onSession`. */
export const requestSession = (): void => post({ is: "request" });

/** Stores the session for a reload of this tab, and hands it to the other tabs. */
export function shareSession(session: SharedSession): void {
  storeSession(session);
  post({ is: "session", session });
}

/** `sessionStorage` survives a reload, and ends with the tab. */
export const storeSession = (session: SharedSession): void =>
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify(session));

/**
 * Returns the stored session of this tab. Returns `undefined` if its token has expired, or the user signed out after the sign-in: a browser
 * can restore the storage of a tab that was closed at the sign-out.
 */
export function readSession(): SharedSession | undefined {
  const stored = sessionStorage.getItem(STORAGE_KEY);
  if (stored === null) return undefined;
  const session = JSON.parse(stored) as SharedSession;
  if (session.token.expiresAtMs > Date.now() && !isSignedOut(session)) return session;
  forgetSession();
  return undefined;
}

/** Returns whether the user signed out of all tabs after this sign-in. */
const isSignedOut = ({ signedInAtMs }: SharedSession): boolean =>
  signedInAtMs <= Number(localStorage.getItem(SIGNED_OUT_KEY) ?? 0);

export const forgetSession = (): void => sessionStorage.removeItem(STORAGE_KEY);

/** Signs the user out in all tabs, including tabs that the browser restores later. */
export function signOutTabs(why: string | undefined): void {
  forgetSession();
  localStorage.setItem(SIGNED_OUT_KEY, String(Date.now()));
  post({ is: "signOut", why });
}

const post = (message: Message): void => channel.postMessage(message);
