import type { Config } from "./schema.ts";

/**
 * Returns the public URLs of the gateway, from its settings or from the address on which it listens.
 *
 * @param port the port that the listener has bound
 */
export function publicUrls(
  config: Config,
  port: number,
): { readonly baseUrl: string; readonly hooksUrl: string } {
  const any: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
  const host = any[config.host] ?? config.host;
  const origin = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const root = config.baseUrl?.replace(/\/v1$/, "") ?? origin;
  return { baseUrl: `${root}/v1`, hooksUrl: config.hooksUrl ?? root };
}
