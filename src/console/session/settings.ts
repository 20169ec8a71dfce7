import type { IssuerSettings } from "./issuer.ts";

/** What the gateway tells its page before anyone is known. */
export interface ConsoleSettings {
  readonly signIn: IssuerSettings | null;
}

let asked: Promise<ConsoleSettings> | undefined;

/** Asked for once. */
export function consoleSettings(): Promise<ConsoleSettings> {
  asked ??= fetch("/console/settings.json", { credentials: "omit" }).then((response) => {
    if (!response.ok) throw new Error(`The gateway answered ${response.status}.`);
    return response.json() as Promise<ConsoleSettings>;
  });
  asked.catch(() => {
    asked = undefined;
  });
  return asked;
}
