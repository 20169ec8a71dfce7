import {
  claimRenewal,
  readTokens,
  recordRejection,
  storeTokens,
  yieldRenewal,
} from "../data/connections/connection-tokens.ts";
import { noteConnectionUse, openConnectionSecrets } from "../data/connections/connections.ts";
import { createCredentialsOf } from "../net/connections/credentials-of.ts";
import { createIssuerFetch } from "../net/connections/issuer.ts";
import { createRenewer, type TokenStore } from "../net/connections/renewer.ts";
import type { Foundation } from "./foundation.ts";

export type ConnectionsDeps = Pick<Foundation, "db" | "keyring" | "outbound" | "clock" | "log">;

/** Minimum time between two updates of a connection's last use, in ms. The database enforces it for all workers together. */
const RECORD_EVERY_MS = 60_000;
/**
 * Maximum number of cached update times. When it is reached, all are dropped, which only causes extra updates that the database ignores.
 */
const MAX_RECORDED = 10_000;

/** Provides the credentials of stored connections. Disposal waits until renewed tokens are stored. */
export function createConnections(deps: ConnectionsDeps) {
  const { outbound, clock, log } = deps;
  const issuerFetch = createIssuerFetch(outbound);
  const store = createTokenStore(deps);
  const renewer = createRenewer({ store, fetch: issuerFetch, clock, log });
  return {
    credentialsOf: createCredentialsOf({ load: store.load, renewer, noteUse: createRecordUse(deps), clock }),
    issuerFetch,
    [Symbol.asyncDispose]: () => renewer[Symbol.asyncDispose](),
  };
}

function createTokenStore({ db, keyring, clock }: ConnectionsDeps): TokenStore {
  return {
    async load(id) {
      const row = await db.selectFrom("connections").selectAll().where("id", "=", id).executeTakeFirst();
      return (
        row && {
          id,
          kind: row.kind,
          config: { ...row.config, ...openConnectionSecrets(keyring, row) },
          allowedOrigins: row.allowedOrigins,
          version: row.version,
          tokens: await readTokens(db, keyring, row),
        }
      );
    },
    claim: (turn, leaseMs) => claimRenewal(db, turn, leaseMs),
    yieldTurn: (turn, options) => yieldRenewal(db, turn, options),
    async store(turn, tokens, connectionVersion) {
      const versions = { connectionVersion, nowMs: clock() };
      await db.transaction().execute((trx) => storeTokens(trx, keyring, turn, tokens, versions));
    },
    recordRejection: (turn, refusal) =>
      db.transaction().execute((trx) => recordRejection(trx, turn, refusal, clock())),
  };
}

function createRecordUse({ db, clock, log }: ConnectionsDeps): (connectionId: string) => void {
  const recordedAtMs = new Map<string, number>();
  return (connectionId) => {
    const nowMs = clock();
    if (nowMs - (recordedAtMs.get(connectionId) ?? Number.NEGATIVE_INFINITY) < RECORD_EVERY_MS) return;
    if (recordedAtMs.size >= MAX_RECORDED) recordedAtMs.clear();
    recordedAtMs.set(connectionId, nowMs);
    noteConnectionUse(db, connectionId).catch((error: unknown) => {
      recordedAtMs.delete(connectionId);
      log.debug(
        { event: "connection.use_not_recorded", err: error, connection: connectionId },
        "last use of a connection could not be recorded",
      );
    });
  };
}
