import type { Bootstrapped } from "../data/bootstrap.ts";
import type { RedisAddress } from "../lib/redis-address.ts";

export interface GreetingFacts {
  readonly baseUrl: string;
  readonly hooksUrl: string;
  /** The call of redis-cli that reaches the Redis in use. */
  readonly redisCli: string;
}

/** For the person who has just started the gateway: on the first start the key, and two lines to paste. */
export function greetingOf(
  { apiKey, welcome }: Bootstrapped,
  { baseUrl, hooksUrl, redisCli }: GreetingFacts,
): string {
  const lines = ["", `Inlet listens at ${baseUrl}`];
  if (apiKey !== undefined) {
    lines.push("", "The first API key, shown this once:", `  ${apiKey}`);
  }
  const [topic] = welcome?.topics ?? [];
  if (welcome !== undefined && topic !== undefined) {
    const url = `${hooksUrl}/hooks/${welcome.channelId}`;
    lines.push(
      "",
      "Send an event to the channel of the app `welcome`:",
      `  curl -sS '${url}' -H 'Content-Type: application/json' -d '{"hello":"world"}'`,
      "and read it from its topic:",
      `  ${redisCli} XRANGE '${topic}' - +`,
    );
  }
  return `${lines.join("\n")}\n\n`;
}

/**
 * The call of redis-cli by which a person reaches a Redis, for a shell. A password is asked for when it runs: what is printed
 * ends in logs.
 */
export function redisCliOf(address: RedisAddress, { cluster }: { readonly cluster: boolean }): string {
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
