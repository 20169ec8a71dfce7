import { CamelCasePlugin, Kysely, PostgresDialect, type PostgresPoolClient, type Transaction } from "kysely";
import pg from "pg";
import { parseJson } from "../event/parse-json.ts";
import { UnavailableError } from "../lib/errors.ts";
import type { Tables } from "./tables.ts";

export type Queryable = Kysely<Tables>;
export type Trx = Transaction<Tables>;

export type DatabaseConnection =
  | { readonly url: string }
  | {
      /** Host name, or directory of a Unix socket. */
      readonly host: string;
      readonly port?: number;
      readonly user: string;
      readonly database: string;
    };

export interface DatabaseOptions {
  readonly connection: DatabaseConnection;
  readonly maxConnections?: number;
  /** Maximum duration of a statement, in ms. 0 turns the limit off. */
  readonly statementTimeoutMs?: number;
  /** Maximum time to wait for a connection, in ms. Default: 3,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/** An open database. Disposal waits until connections in use are returned. */
export interface Database extends AsyncDisposable {
  readonly db: Kysely<Tables>;
  /** Reason why PostgreSQL rejected a write. `undefined` if none was rejected since `clearWriteProblem`. */
  readonly writeProblem: () => string | undefined;
  readonly clearWriteProblem: () => void;
}

/**
 * Opens a connection pool of limited size, which connects on the first query.
 *
 * Column names are converted to camelCase. `bigint` is read as a number (all values are far below 2^53), `timestamptz` as a
 * `Date`, and `json` as the parsed value. A query rejects with `UnavailableError` if PostgreSQL is unreachable, overloaded or too
 * slow. Otherwise it rejects with the driver's `DatabaseError`.
 */
export function openDatabase(options: DatabaseOptions): Database {
  const { connection, maxConnections = 10, statementTimeoutMs = 10_000, connectTimeoutMs = 3_000 } = options;
  const place = placeOf(connection);
  const pool = new pg.Pool({
    ...("url" in connection ? { connectionString: connection.url } : connection),
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    // Add a client-side timeout, because a server that hangs cannot enforce the statement timeout.
    query_timeout: statementTimeoutMs === 0 ? 0 : statementTimeoutMs + 2_000,
    idle_in_transaction_session_timeout: 60_000,
    keepAlive: true,
    application_name: "inlet",
    types: { getTypeParser },
  });
  // Ignore `error` events, because an `error` event without a listener ends the process. The pool already handles lost connections.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));

  let writeProblem: string | undefined;
  const onError = ({ code = "" }: pg.DatabaseError): void => {
    writeProblem = WRITE_PROBLEMS[code] ?? writeProblem;
  };
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: translatePool(pool, place, onError) }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  });
  return {
    db,
    writeProblem: () => writeProblem,
    clearWriteProblem() {
      writeProblem = undefined;
    },
    [Symbol.asyncDispose]: () => closeOnce(db, pool),
  };
}

/** Reasons why PostgreSQL rejects all writes, by SQLSTATE. They contain no paths, because `/readyz` shows them to everyone. */
const WRITE_PROBLEMS: Readonly<Record<string, string>> = {
  "53100": "The disk of PostgreSQL is full.",
  "58030": "PostgreSQL cannot read or write its files.",
  "25006": "PostgreSQL is read-only.",
};

/** Returns true if PostgreSQL rejected a statement, for example because the user lacks a permission. */
export const isDatabaseError = (error: unknown): error is Error => error instanceof pg.DatabaseError;

/** Returns true if the error is a unique violation. If `constraint` is given, the error must be about that constraint. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === "23505" &&
    (constraint === undefined || error.constraint === constraint)
  );
}

export const isForeignKeyViolation = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === "23503";

/**
 * Returns true if the server rejects the user, password or database, so that a retry is useless. Messages with `SASL` are password
 * errors that the driver detects.
 */
export function isConnectionRefused({ cause }: UnavailableError): boolean {
  if (cause instanceof pg.DatabaseError) return /^(28|3D)/.test(cause.code ?? "");
  return cause instanceof Error && cause.message.startsWith("SASL");
}

/** Describes host and database for error messages. The description contains no credentials. */
function placeOf(connection: DatabaseConnection): string {
  const { host, port, database } = new pg.Client("url" in connection ? connection.url : connection);
  return `${host.startsWith("/") ? host : `${host}:${port}`}, database ${database}`;
}

async function closeOnce(db: Kysely<Tables>, pool: pg.Pool): Promise<void> {
  await db.destroy();
  // End the pool here too, because Kysely does not end a pool that it has never used.
  if (!pool.ended && !pool.ending) await pool.end();
}

const INT8 = 20;
const JSON_TYPES: readonly number[] = [114, 3802];

function getTypeParser(oid: number, format?: "text" | "binary") {
  if (JSON_TYPES.includes(oid)) return parseJson;
  return oid === INT8 ? Number : pg.types.getTypeParser(oid, format ?? "text");
}

/**
 * Wraps the pool so that connection errors and temporary query errors become `UnavailableError`. Each client keeps its wrapper,
 * because Kysely stores state per client.
 */
function translatePool(pool: pg.Pool, place: string, onError: (error: pg.DatabaseError) => void) {
  const wrappers = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect(): Promise<PostgresPoolClient> {
      const client = await pool.connect().catch((error: unknown) => {
        throw new UnavailableError(`cannot connect to PostgreSQL at ${place}`, { cause: error });
      });
      const known = wrappers.get(client);
      if (known) return known;
      const wrapper = translateClient(client, onError);
      wrappers.set(client, wrapper);
      return wrapper;
    },
  };
}

function translateClient(
  client: pg.PoolClient,
  onError: (error: pg.DatabaseError) => void,
): PostgresPoolClient {
  let broken = false;
  const query = async (sql: string, parameters: unknown[]) => {
    try {
      return await client.query(sql, parameters);
    } catch (error) {
      if (error instanceof pg.DatabaseError) onError(error);
      if (!isUnavailable(error)) throw error;
      // Discard the client after an error of the driver itself, because the connection is lost or still busy with an abandoned query.
      broken ||= !(error instanceof pg.DatabaseError);
      throw new UnavailableError("PostgreSQL is temporarily unavailable", { cause: error });
    }
  };
  return {
    // The cast is safe, because Kysely uses the missing variant of `query` only to stream rows, which Inlet never does.
    query: query as unknown as PostgresPoolClient["query"],
    release: (destroy) => client.release(broken || destroy === true),
  };
}

/** SQLSTATE of the trigger `require_master_key`, which rejects values that were encrypted with a former master key. */
const OTHER_MASTER_KEY = "IN001";

/**
 * Returns true if a retry of the query can succeed, for example after a lost connection, a shutdown or a deadlock.
 *
 * The codes are from appendix A of the PostgreSQL manual: connection exceptions, insufficient resources, operator intervention
 * (including statement timeouts), read-only servers, deadlocks and serialization failures.
 */
function isUnavailable(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return false;
  if (!(error instanceof pg.DatabaseError)) return true;
  const code = error.code ?? "";
  return /^(08|53|57|58)/.test(code) || ["25006", "40001", "40P01", "55P03", OTHER_MASTER_KEY].includes(code);
}
