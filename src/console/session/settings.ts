import type { IssuerSettings } from "./issuer.ts";

/** Settings that the gateway gives to the page before sign-in. */
export interface ConsoleSettings {
  readonly signIn: IssuerSettings | null;
}

let loading: Promise<ConsoleSettings> | undefined;

/** Loads the settings and caches them. A failed request is retried on the next call. */
export function consoleSettings(): Promise<ConsoleSettings> {
  loading ??= fetch("/console/settings.json", { credentials: "omit" }).then((response) => {
    if (!response.ok) throw new Error(`The gateway responded with status ${response.status}.`);
    return response.json() as Promise<ConsoleSettings>;
  });
  loading.catch(() => {
    loading = undefined;
  });
  return loading;
}
