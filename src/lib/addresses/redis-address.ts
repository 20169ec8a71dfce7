/** Address and login of a Redis server, as ioredis connection options. */
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
 * Parses a comma-separated list of Redis addresses. An address has one of three forms:
 * `redis://[user:password@]host[:port][/db]`, `rediss://…` (TLS) or `unix://[user:password@]/path/to.sock[?db=n]`.
 *
 * @throws Error that describes the first invalid entry, without its credentials
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

/** Returns `host:port` or the socket path of a Redis server, for messages and as a map key. */
export const addressName = (address: RedisAddress): string =>
  address.path ?? `${address.host}:${address.port}`;

function parseAddress(text: string): RedisAddress {
  // Insert a dummy host into socket URLs, because the URL parser rejects credentials without a host.
  const url = URL.parse(text.replace(/^(unix:\/\/[^/]*@)\//, "$1socket/"));
  if (url === null) throw new Error("a Redis address is not a URL");
  const credentials = {
    ...(url.username === "" ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === "" ? {} : { password: decodeURIComponent(url.password) }),
  };
  switch (url.protocol) {
    case "redis:":
    case "rediss:":
      if (url.hostname === "") throw new Error("a Redis address must contain a host");
      return {
        host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
        port: url.port === "" ? 6379 : Number(url.port),
        db: parseDb(url.pathname.slice(1) || url.searchParams.get("db")),
        ...(url.protocol === "rediss:" ? { tls: {} } : {}),
        ...credentials,
      };
    case "unix:":
      if (url.pathname === "" || url.pathname === "/")
        throw new Error("a unix:// address of Redis must contain the path of its socket");
      return {
        path: decodeURIComponent(url.pathname),
        db: parseDb(url.searchParams.get("db")),
        ...credentials,
      };
    default:
      throw new Error(
        `a Redis address must begin with redis://, rediss:// or unix://, not ${url.protocol}//`,
      );
  }
}

function parseDb(text: string | null): number {
  if (text === null) return 0;
  if (!/^\d{1,5}$/.test(text)) throw new Error("the database of a Redis address must be a number");
  return Number(text);
}
