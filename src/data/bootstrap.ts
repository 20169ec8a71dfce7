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
  /** A key to accept besides those that the database knows. */
  readonly apiKey?: string | undefined;
  /** The channel of the app `welcome`, which an empty database is given to try; its settings as its kind has accepted them. */
  readonly welcome?: NewChannel | undefined;
}

/** Made by the first start. */
export interface Bootstrapped {
  /** The first key, where none was handed in. */
  readonly apiKey?: string | undefined;
  readonly welcome?:
    | {
        readonly organizationId: string;
        readonly appId: string;
        /** The channel's address: `<hooks>/hooks/<channelId>`. */
        readonly channelId: string;
        /** Topics of its definitions, in their order. */
        readonly topics: readonly string[];
      }
    | undefined;
}

const NAME = "default";
/** That text is sealed for this place. */
export const FIRST_START_PLACE = "untold_first_start/facts";

/**
 * Gives an empty database its organization and space `default`, a service account and a key that may do all, and the app
 * `welcome`. Of several gateways that start at once one does. Later starts only see to it that the key handed in is accepted.
 * The result is kept, sealed, until `tellFirstStart` has told it.
 */
export const bootstrap = (options: BootstrapOptions): Promise<Bootstrapped> =>
  options.db.transaction().execute((trx) => bootstrapWithin(trx, options));

/** The same in a transaction of the caller's. */
export async function bootstrapWithin(
  trx: Trx,
  options: Omit<BootstrapOptions, "db">,
): Promise<Bootstrapped> {
  const { clock, apiKey } = options;
  // The lock makes the others wait, and then find it done.
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
 * Hands on what the first start has made, and forgets it once `tell` has resolved; an empty object where it was told before.
 * If the process ended or `tell` failed, the result is handed on the next time. Of several at once one gets it:
 * the others pass by the locked row.
 *
 * @throws UnavailableError, and what `tell` throws
 */
export const tellFirstStart = (
  { db, keyring }: Pick<BootstrapOptions, "db" | "keyring">,
  tell: (made: Bootstrapped) => Promise<void>,
): Promise<void> =>
  db.transaction().execute(async (trx) => {
    const untold = await trx
      .selectFrom("untoldFirstStart")
      .select("sealedFacts")
      .forUpdate()
      .skipLocked()
      .executeTakeFirst();
    if (untold === undefined) return tell({});
    await tell(JSON.parse(keyring.open(untold.sealedFacts, FIRST_START_PLACE)) as Bootstrapped);
    await trx.deleteFrom("untoldFirstStart").execute();
  });

async function firstStart(trx: Trx, options: Omit<BootstrapOptions, "db">): Promise<Bootstrapped> {
  const nowMs = options.clock();
  const made = await createOrganization(trx, { organization: NAME, space: NAME, account: NAME }, nowMs);
  await trx.updateTable("cluster").set(made).execute();
  // Its limits are others from now on.
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
    description: "A first webhook channel, to try Inlet with.",
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
