import type { IssuerSettings } from "./issuer.ts";

/** Settings that the gateway gives to the console before the user signs in. */
export interface ConsoleSettings {
  readonly signIn: IssuerSettings | null;
}

let loading: Promise<ConsoleSettings> | undefined;

/** Loads the settings once and caches them. After a failed request, the next call sends the request again. */
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
