import type { Queryable } from "../../../data/database.ts";
import { holds } from "../../../http/callers/authorize.ts";
import type { Caller } from "../../../http/context.ts";
import { createMatch, type Match } from "./match.ts";

type Find = (db: Queryable, organizationId: string, text: string) => Promise<readonly Match[]>;

/** Maximum number of matches per kind. Several channels can have the same uid. */
const MAX_MATCHES = 20;

const findApps: Find = async (db, organizationId, text) => {
  const rows = await db
    .selectFrom("apps")
    .select(["id", "uid", "title"])
    .where("organizationId", "=", organizationId)
    .where((eb) => eb.or([eb("id", "=", text), eb("uid", "=", text)]))
    .execute();
  return rows.map(({ id, uid, title }) =>
    createMatch("app", { id, appId: id, title: `${title} (${uid})` }, "apps", id),
  );
};

const findBlueprints: Find = async (db, organizationId, text) => {
  const rows = await db
    .selectFrom("blueprints")
    .select(["id", "uid", "title"])
    .where("organizationId", "=", organizationId)
    .where((eb) => eb.or([eb("id", "=", text), eb("uid", "=", text)]))
    .execute();
  return rows.map(({ id, uid, title }) =>
    createMatch("blueprint", { id, title: `${title} (${uid})` }, "blueprints", id),
  );
};

/** Finds channels by uid only, because the id of a channel is the secret part of its address. */
const findChannels: Find = async (db, organizationId, text) => {
  const rows = await db
    .selectFrom("channels")
    .innerJoin("apps", "apps.id", "channels.appId")
    .select(["channels.uid", "appId", "apps.title"])
    .where("channels.organizationId", "=", organizationId)
    .where("channels.uid", "=", text)
    .orderBy("channels.number")
    .limit(MAX_MATCHES)
    .execute();
  return rows.map(({ uid, appId, title }) =>
    createMatch("channel", { id: uid, appId, title: `${uid} of ${title}` }, "apps", appId, "channels", uid),
  );
};

const findSubscriptions: Find = async (db, organizationId, text) => {
  const rows = await db
    .selectFrom("subscriptions")
    .select(["id", "appId", "eventUid"])
    .where((eb) => eb.and({ organizationId, id: text }))
    .where("agent", "is", null)
    .execute();
  return rows.map(({ id, appId, eventUid }) =>
    createMatch("subscription", { id, appId, title: eventUid }, "apps", appId, "subscriptions", id),
  );
};

const findDeadLetters: Find = async (db, organizationId, text) => {
  const rows = await db
    .selectFrom("deadLetters")
    .innerJoin("subscriptions", "subscriptions.id", "deadLetters.subscriptionId")
    .select(["deadLetters.id", "subscriptionId", "appId", "type"])
    .where("deadLetters.organizationId", "=", organizationId)
    .where("deadLetters.id", "=", text)
    .where("agent", "is", null)
    .execute();
  return rows.map(({ id, appId, subscriptionId, type }) => {
    const path = ["apps", appId, "subscriptions", subscriptionId, "dead-letters", id];
    return createMatch("deadLetter", { id, appId, title: type }, ...path);
  });
};

const findProblems: Find = async (db, organizationId, text) => {
  const rows = await db
    .selectFrom("problems")
    .select(["id", "appId", "kind"])
    .where((eb) => eb.and({ organizationId, id: text }))
    .execute();
  return rows.map(({ id, appId, kind }) =>
    createMatch("problem", { id, appId, title: kind }, "problems", id),
  );
};

const findConnections: Find = async (db, organizationId, text) => {
  const rows = await db
    .selectFrom("connections")
    .select(["id", "name"])
    .where((eb) => eb.and({ organizationId, id: text }))
    .execute();
  return rows.map(({ id, name }) => createMatch("connection", { id, title: name }, "connections", id));
};

const findApiKeys: Find = async (db, organizationId, text) => {
  const rows = await db
    .selectFrom("apiKeys")
    .select(["id", "name"])
    .where((eb) => eb.and({ organizationId, id: text }))
    .execute();
  return rows.map(({ id, name }) => createMatch("apiKey", { id, title: name }, "iam", "api-keys", id));
};

const LOOKUPS: readonly { readonly permission: string; readonly find: Find }[] = [
  { permission: "apps.read", find: findApps },
  { permission: "blueprints.read", find: findBlueprints },
  { permission: "apps.read", find: findChannels },
  { permission: "apps.read", find: findSubscriptions },
  { permission: "apps.read", find: findDeadLetters },
  { permission: "problems.read", find: findProblems },
  { permission: "connections.read", find: findConnections },
  { permission: "iam.read", find: findApiKeys },
];

/** Finds rows of the database by their id or uid, in all tables that the caller may read. */
export async function findRows(db: Queryable, caller: Caller, text: string): Promise<readonly Match[]> {
  const allowed = LOOKUPS.filter(({ permission }) => holds(caller, permission));
  const found = await Promise.all(allowed.map(({ find }) => find(db, caller.organizationId, text)));
  return found.flat();
}
