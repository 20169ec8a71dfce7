import { CamelCasePlugin, Kysely, PostgresDialect, type PostgresPoolClient, type Transaction } from "kysely";
import pg from "pg";
import { UnavailableError } from "../lib/errors.ts";
import type { Tables } from "./tables.ts";

/** Runs queries: the pool, or a transaction. */
export type Queryable = Kysely<Tables>;
export type Trx = Transaction<Tables>;

export type DatabaseConnection =
  | { readonly url: string }
  | {
      /** A host name, or the folder of a unix socket. */
      readonly host: string;
      readonly port?: number;
      readonly user: string;
      readonly database: string;
    };

export interface DatabaseOptions {
  readonly connection: DatabaseConnection;
  readonly maxConnections?: number;
  /** 0: none. */
  readonly statementTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
}

/** The one door to PostgreSQL. Disposal waits for the connections that are in use. */
export interface Database extends AsyncDisposable {
  readonly db: Kysely<Tables>;
}

/**
 * Opens a bounded pool; nothing is connected before the first query. Columns are camelCase on this side. `bigint` is read
 * as number (all of ours are far below 2^53), `timestamptz` as Date, `json` parsed.
 *
 * The error of a query: `UnavailableError` when PostgreSQL is away, overloaded or too slow; else the driver's
 * `DatabaseError` as it is.
 */
export function openDatabase(options: DatabaseOptions): Database {
  const { connection, maxConnections = 10, statementTimeoutMs = 10_000, connectTimeoutMs = 3_000 } = options;
  const place = placeOf(connection);
  const pool = new pg.Pool({
    ...("url" in connection ? { connectionString: connection.url } : connection),
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    // A server that no longer answers at all cannot keep its own timeout.
    query_timeout: statementTimeoutMs === 0 ? 0 : statementTimeoutMs + 2_000,
    idle_in_transaction_session_timeout: 60_000,
    keepAlive: true,
    application_name: "inlet",
    types: { getTypeParser },
  });
  // An idle connection that is lost leaves the pool by itself; one in use makes its query fail. Unheard, either event
  // would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));

  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: translatePool(pool, place) }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  });
  return { db, [Symbol.asyncDispose]: () => closeOnce(db, pool) };
}

/** True when the error says that a row like this exists already. `constraint` names the rule, where one is meant. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === "23505" &&
    (constraint === undefined || error.constraint === constraint)
  );
}

/** True when the error says that other rows refer to the one to be deleted. */
export const isForeignKeyViolation = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === "23503";

/**
 * True when the server is there and refuses this caller for good: the user, the password or the database is wrong. The answer to
 * a wrong password that is missing here comes from the driver.
 */
export function isConnectionRefusal({ cause }: UnavailableError): boolean {
  if (cause instanceof pg.DatabaseError) return /^(28|3D)/.test(cause.code ?? "");
  return cause instanceof Error && cause.message.startsWith("SASL");
}

/** Host and database for people, without credentials. */
function placeOf(connection: DatabaseConnection): string {
  const { host, port, database } = new pg.Client("url" in connection ? connection.url : connection);
  return `${host.startsWith("/") ? host : `${host}:${port}`}, database ${database}`;
}

async function closeOnce(db: Kysely<Tables>, pool: pg.Pool): Promise<void> {
  await db.destroy();
  // Kysely ends a pool only once it has used it.
  if (!pool.ended && !pool.ending) await pool.end();
}

const INT8 = 20;

function getTypeParser(oid: number, format?: "text" | "binary") {
  return oid === INT8 ? Number : pg.types.getTypeParser(oid, format ?? "text");
}

/** The pool as Kysely sees it, with errors in our words. One wrapper per client: Kysely keeps state by client. */
function translatePool(pool: pg.Pool, place: string) {
  const wrappers = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect(): Promise<PostgresPoolClient> {
      const client = await pool.connect().catch((error: unknown) => {
        throw new UnavailableError(`PostgreSQL at ${place} gives no connection`, { cause: error });
      });
      const known = wrappers.get(client);
      if (known) return known;
      const wrapper = translateClient(client);
      wrappers.set(client, wrapper);
      return wrapper;
    },
  };
}

function translateClient(client: pg.PoolClient): PostgresPoolClient {
  let broken = false;
  const query = async (sql: string, parameters: unknown[]) => {
    try {
      return await client.query(sql, parameters);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      // After a lost connection or an abandoned query the client's state is unknown.
      broken ||= !(error instanceof pg.DatabaseError);
      throw new UnavailableError("PostgreSQL does not answer", { cause: error });
    }
  };
  return {
    // Kysely's other form of a query, by a cursor, is for streams of rows: none are read so.
    query: query as unknown as PostgresPoolClient["query"],
    release: (destroy) => client.release(broken || destroy === true),
  };
}

/** Of our own: what is written was sealed under a master key of before. */
const OTHER_MASTER_KEY = "IN001";

/**
 * Classes and codes after PostgreSQL's appendix A: connection exceptions, too few resources, operator intervention (statement
 * timeouts and shutdown), a server that became read-only, deadlocks and lost races. All worth a retry.
 */
function isUnavailable(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return false;
  if (!(error instanceof pg.DatabaseError)) return true;
  const code = error.code ?? "";
  return /^(08|53|57|58)/.test(code) || ["25006", "40001", "40P01", "55P03", OTHER_MASTER_KEY].includes(code);
}
