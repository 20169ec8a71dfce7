/** Where a Redis is, as ioredis takes it. */
export interface RedisAddress {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly db?: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: Readonly<Record<string, never>>;
}

/**
 * Reads a comma list of `redis://[user:password@]host[:port][/db]`, `rediss://…` (TLS) and
 * `unix://[user:password@]/path/to.sock[?db=n]`.
 *
 * @throws Error naming the entry (without its credentials) that is none of these.
 */
export function parseRedisAddresses(list: string): readonly [RedisAddress, ...RedisAddress[]] {
  const [first, ...rest] = list
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .map(parseAddress);
  if (first === undefined) throw new Error("no Redis address is given");
  return [first, ...rest];
}

/** Host and port, or the path, for messages and as a key. */
export const addressName = (address: RedisAddress): string =>
  address.path ?? `${address.host}:${address.port}`;

function parseAddress(text: string): RedisAddress {
  // A URL cannot have credentials without a host: a socket gets one for as long as it is read.
  const url = URL.parse(text.replace(/^(unix:\/\/[^/]*@)\//, "$1socket/"));
  if (url === null) throw new Error("a Redis address is not a URL");
  const credentials = {
    ...(url.username === "" ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === "" ? {} : { password: decodeURIComponent(url.password) }),
  };
  switch (url.protocol) {
    case "redis:":
    case "rediss:":
      if (url.hostname === "") throw new Error("a Redis address names no host");
      return {
        host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
        port: url.port === "" ? 6379 : Number(url.port),
        db: parseDb(url.pathname.slice(1) || url.searchParams.get("db")),
        ...(url.protocol === "rediss:" ? { tls: {} } : {}),
        ...credentials,
      };
    case "unix:":
      if (url.pathname === "" || url.pathname === "/") throw new Error("a Redis address names no socket");
      return {
        path: decodeURIComponent(url.pathname),
        db: parseDb(url.searchParams.get("db")),
        ...credentials,
      };
    default:
      throw new Error(`a Redis address begins with redis://, rediss:// or unix://, not ${url.protocol}//`);
  }
}

function parseDb(text: string | null): number {
  if (text === null) return 0;
  if (!/^\d{1,5}$/.test(text)) throw new Error("the database of a Redis address is not a number");
  return Number(text);
}
