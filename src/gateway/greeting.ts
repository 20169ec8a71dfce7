import type { Bootstrapped } from "../data/bootstrap.ts";

/** What the greeting has to name. */
export interface GreetingFacts {
  readonly baseUrl: string;
  readonly hooksUrl: string;
  /** The call of redis-cli that reaches the Redis in use. */
  readonly redisCli: string;
}

/** What a person who has just started the gateway reads: on the first start the key, and two lines to paste. */
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
