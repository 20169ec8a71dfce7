import { availableParallelism } from "node:os";
import { type Bootstrapped, tellFirstStart } from "../data/bootstrap.ts";
import type { RedisAddress } from "../lib/addresses/redis-address.ts";
import type { Foundation } from "./foundation.ts";

/** Prints text for the operator. Resolves once the text has been written. */
export type Print = (text: string) => Promise<void>;

export interface GreetingFacts {
  readonly baseUrl: string;
  /** `undefined` if this gateway does not serve the documentation. */
  readonly docsUrl: string | undefined;
  /** `undefined` if this gateway does not serve the console. */
  readonly consoleUrl: string | undefined;
  readonly hooksUrl: string;
  readonly redisCli: string;
}

/**
 * Greets the operator and prints the first API key. The stored copy is deleted only after printing, so a failed start prints the key again.
 */
export async function greet(
  { db, keyring, log, config }: Pick<Foundation, "db" | "keyring" | "log" | "config">,
  facts: GreetingFacts,
  print: Print,
): Promise<void> {
  let isPrinted = false;
  try {
    await tellFirstStart({ db, keyring }, async (made) => {
      isPrinted = true;
      await print(renderGreeting(made, facts) + renderProcessesHint(made, config.processes));
    });
  } catch (err) {
    log.warn(
      { event: "gateway.greeting_failed", err },
      "the first API key may not have been printed; the next start prints it again",
    );
    if (!isPrinted) await print(renderGreeting({}, facts)).catch(() => {});
  }
}

/** Number of cores from which the first start suggests several processes. */
const MANY_CORES = 4;

/** Returns a hint for the first start on a machine with unused cores, otherwise an empty text. */
export function renderProcessesHint(
  { apiKey }: Pick<Bootstrapped, "apiKey">,
  processes: number,
  cores = availableParallelism(),
): string {
  if (apiKey === undefined || processes > 1 || cores < MANY_CORES) return "";
  return `This gateway uses one of ${cores} cores. INLET_PROCESSES=auto starts one process per core.\n\n`;
}

function renderGreeting(
  { apiKey, welcome }: Bootstrapped,
  { baseUrl, docsUrl, consoleUrl, hooksUrl, redisCli }: GreetingFacts,
): string {
  const lines = ["", `Inlet listens at ${baseUrl}`];
  if (docsUrl !== undefined) lines.push(`Guides and API reference: ${docsUrl}`);
  if (consoleUrl !== undefined) lines.push(`Console: ${consoleUrl}`);
  if (apiKey !== undefined) {
    lines.push("", "The first API key, shown only once:", `  ${apiKey}`);
  }
  const [topic] = welcome?.topics ?? [];
  if (welcome !== undefined && topic !== undefined) {
    const url = `${hooksUrl}/hooks/${welcome.channelId}`;
    lines.push(
      "",
      "Send an event to the channel of the app `welcome`:",
      `  curl -sS -w '\\n' '${url}' -H 'Content-Type: application/json' -d '{"hello":"world"}'`,
      "and read it from its topic:",
      `  ${redisCli} XRANGE '${topic}' - +`,
    );
  }
  return `${lines.join("\n")}\n\n`;
}

/** Returns a shell-quoted `redis-cli` command for this server. The command asks for the password, because printed text ends up in logs. */
export function formatRedisCli(address: RedisAddress, { cluster }: { readonly cluster: boolean }): string {
  const { host = "127.0.0.1", port = 6379, path, db = 0, username, password, tls } = address;
  const words = ["redis-cli"];
  if (path === undefined) words.push("-h", quote(host), "-p", String(port));
  else words.push("-s", quote(path));
  if (tls) words.push("--tls");
  if (cluster) words.push("-c");
  if (db !== 0) words.push("-n", String(db));
  if (username !== undefined) words.push("--user", quote(username));
  if (password !== undefined) words.push("--askpass");
  return words.join(" ");
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
