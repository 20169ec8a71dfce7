import { setTimeout as delay } from "node:timers/promises";
import { parseJson } from "../event/parse-json.ts";
import { topicOf } from "../event/topic.ts";
import type { Clock } from "../lib/clock.ts";
import { acceptApiKey, createApiKey, type KeyGrant } from "./accounts/api-keys.ts";
import { operatorOf } from "./accounts/audit-entry.ts";
import { createOrganization, type NewOrganization } from "./accounts/organizations.ts";
import { insertApp } from "./apps/apps.ts";
import { recordChange } from "./changes.ts";
import { openAddress } from "./channels/address-columns.ts";
import type { NewChannel } from "./channels/channels.ts";
import type { Queryable, Trx } from "./database.ts";
import type { Keyring } from "./keyring/keyring.ts";
import type { ChannelRow } from "./tables.ts";

export interface BootstrapOptions {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** API key from the configuration. It is valid in addition to the keys in the database. */
  readonly apiKey?: string | undefined;
  /** Channel of the example app `welcome`, which is created only in an empty database. Its config must already be validated. */
  readonly welcome?: NewChannel | undefined;
}

export interface Bootstrapped {
  /** The first API key in plain text. `undefined` if a key is set in the configuration. */
  readonly apiKey?: string | undefined;
  readonly welcome?:
    | {
        readonly organizationId: string;
        readonly appId: string;
        /** Last part of the channel's URL, `<hooks>/hooks/<channelId>`. */
        readonly channelId: string;
        readonly topics: readonly string[];
      }
    | undefined;
}

const NAME = "default";
/**
 * Maximum time in ms to wait for another call that reports the first start. PostgreSQL soon releases the lock of a process that was
 * killed meanwhile.
 */
const LOCKED_MS = 1_000;
const LOCKED_POLL_MS = 50;
/** Encryption context (AAD) of the stored result of the first start, which contains an API key. */
export const FIRST_START_PLACE = "untold_first_start/facts";

/**
 * Sets up an empty database: an organization and a space named `default`, a service account, a key with all permissions and the
 * app `welcome`. If several gateways start together, only one of them does this. On later starts, only ensures that the configured
 * key is accepted.
 *
 * The result stays in the database, encrypted, until `tellFirstStart` has reported it.
 */
export const bootstrap = (options: BootstrapOptions): Promise<Bootstrapped> =>
  options.db.transaction().execute((trx) => bootstrapWithin(trx, options));

export async function bootstrapWithin(
  trx: Trx,
  options: Omit<BootstrapOptions, "db">,
): Promise<Bootstrapped> {
  const { clock, apiKey } = options;
  // Lock the row, so that other gateways that start now wait until this transaction commits.
  const cluster = await trx.selectFrom("cluster").selectAll().forUpdate().executeTakeFirstOrThrow();
  const { organizationId, spaceId, accountId } = cluster;
  if (organizationId === null || spaceId === null || accountId === null) {
    const made = await firstStart(trx, options);
    const sealedFacts = options.keyring.seal(JSON.stringify(made), FIRST_START_PLACE);
    await trx.insertInto("untoldFirstStart").values({ sealedFacts }).execute();
    return made;
  }
  if (apiKey) await acceptApiKey(trx, apiKey, rootGrant({ organizationId, spaceId, accountId }), clock());
  return {};
}

/**
 * Calls `tell` with the result of the first start, and deletes the stored result once `tell` has resolved. Calls `tell` with an
 * empty object if the result was already reported.
 *
 * If `tell` fails or the process dies, the next call reports the result again. If several gateways call this function together, only
 * one gets the result. The others wait for it, up to a timeout.
 *
 * @throws UnavailableError, or the error of `tell`
 */
export async function tellFirstStart(
  options: Pick<BootstrapOptions, "db" | "keyring">,
  tell: (made: Bootstrapped) => Promise<void>,
): Promise<void> {
  const deadline = performance.now() + LOCKED_MS;
  while (!(await tellUnlocked(options, tell))) {
    const locked = await options.db.selectFrom("untoldFirstStart").select("sealedFacts").executeTakeFirst();
    if (locked === undefined || performance.now() > deadline) return tell({});
    await delay(LOCKED_POLL_MS);
  }
}

/** Returns false if the result is locked by another call, or was already reported. */
const tellUnlocked = (
  { db, keyring }: Pick<BootstrapOptions, "db" | "keyring">,
  tell: (made: Bootstrapped) => Promise<void>,
): Promise<boolean> =>
  db.transaction().execute(async (trx) => {
    const untold = await trx
      .selectFrom("untoldFirstStart")
      .select("sealedFacts")
      .forUpdate()
      .skipLocked()
      .executeTakeFirst();
    if (untold === undefined) return false;
    await tell(parseJson(keyring.open(untold.sealedFacts, FIRST_START_PLACE)) as Bootstrapped);
    await trx.deleteFrom("untoldFirstStart").execute();
    return true;
  });

async function firstStart(trx: Trx, options: Omit<BootstrapOptions, "db">): Promise<Bootstrapped> {
  const nowMs = options.clock();
  const made = await createOrganization(trx, { organization: NAME, space: NAME, account: NAME }, nowMs);
  await trx.updateTable("cluster").set(made).execute();
  // Make all gateways reload the limits, because the new operator's organization has its own default limits.
  await recordChange(trx, { kind: "limits", key: made.organizationId });
  const grant = rootGrant(made);
  const welcome = options.welcome && (await installWelcome(trx, made, options.welcome, options, nowMs));
  if (options.apiKey) {
    await acceptApiKey(trx, options.apiKey, grant, nowMs);
    return { welcome };
  }
  const { token } = await createApiKey(trx, grant, nowMs);
  return { apiKey: token, welcome };
}

async function installWelcome(
  trx: Trx,
  { organizationId, spaceId }: NewOrganization,
  channel: NewChannel,
  { keyring }: Pick<BootstrapOptions, "keyring">,
  nowMs: number,
): Promise<Bootstrapped["welcome"]> {
  const app = {
    uid: "welcome",
    title: "Welcome",
    description: "An example app with a webhook channel, for trying out Inlet.",
    blueprintId: null,
    organizationId,
    spaceId,
  };
  const installed = await insertApp(trx, operatorOf(organizationId), app, [channel], { keyring, nowMs });
  const appId = installed.app.id;
  const [row] = installed.channels as readonly [ChannelRow];
  const channelId = openAddress(keyring, row);
  const channelUid = row.uid;
  const topics = channel.events.map(({ type }) => topicOf({ organizationId, appId, channelUid, type }));
  return { organizationId, appId, channelId, topics };
}

const rootGrant = (owner: NewOrganization): KeyGrant => ({ ...owner, name: NAME, permissions: ["*"] });
