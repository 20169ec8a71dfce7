import type { RedisAddress } from "../lib/redis-address.ts";

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
