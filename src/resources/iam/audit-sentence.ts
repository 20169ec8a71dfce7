import type { AuditAction, AuditEntity } from "../../data/accounts/audit-entry.ts";
import type { Queryable } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";

type Entry = Pick<Row<"audit">, "accountId" | "action" | "entity" | "entityId" | "fields">;

/** Column with the name of each kind of entity that has one. Other entities are named by their id. */
const NAMES = {
  account: ["accounts", "name"],
  apiKey: ["apiKeys", "name"],
  app: ["apps", "title"],
  blueprint: ["blueprints", "title"],
  collection: ["collections", "name"],
  connection: ["connections", "name"],
  form: ["forms", "title"],
  group: ["groups", "name"],
  organization: ["organizations", "name"],
  problem: ["problems", "kind"],
  role: ["roles", "name"],
  space: ["spaces", "name"],
  store: ["stores", "name"],
  subscription: ["subscriptions", "eventUid"],
} as const satisfies Partial<Record<AuditEntity, readonly [string, string]>>;

type Named = keyof typeof NAMES;
const isNamed = (entity: AuditEntity): entity is Named => Object.hasOwn(NAMES, entity);

/** An access token is identified by its API key, and a list of dead letters by its subscription. */
const nameOwner = ({ entity, entityId }: Entry): AuditEntity => {
  if (entity === "accessToken") return entityId.startsWith("acc_") ? "account" : "apiKey";
  return entity === "deadLetter" && entityId.startsWith("sub_") ? "subscription" : entity;
};

const MAX_FIELDS = 3;

/**
 * Returns a function that describes an audit entry in one sentence, such as `Ada revoked the API key 'ci'.` Entities that no longer
 * exist are named by their id.
 */
export async function createSentences(
  db: Queryable,
  organizationId: string,
  entries: readonly Entry[],
): Promise<(entry: Entry) => string> {
  const wanted = new Map<Named, Set<string>>();
  const want = (entity: AuditEntity, id: string | null): void => {
    if (id !== null && isNamed(entity)) wanted.set(entity, (wanted.get(entity) ?? new Set()).add(id));
  };
  for (const entry of entries) {
    want("account", entry.accountId);
    want(nameOwner(entry), entry.entityId);
    if (entry.entity === "channel") want("app", splitChannelId(entry.entityId)[0]);
  }
  const found = await Promise.all(
    [...wanted].map(async ([entity, ids]) => readNames(db, organizationId, entity, [...ids])),
  );
  const names = new Map(found.flat());
  return (entry) => {
    const actor =
      entry.accountId === null
        ? "The operator"
        : (names.get(entry.accountId) ?? `Account ${entry.accountId}`);
    const { action, entity, entityId, fields } = entry;
    const verb = VERBS[action];
    if (entity === "accessToken") {
      const owner = `the ${nounOf(nameOwner(entry))} ${quote(names.get(entityId), entityId)}`;
      return `${actor} ${verb} an access token for ${owner}.`;
    }
    const noun =
      nameOwner(entry) === entity ? nounOf(entity) : `dead letters of the ${nounOf(nameOwner(entry))}`;
    const target =
      entity === "channel"
        ? nameChannel(names, entityId)
        : `the ${noun} ${quote(names.get(entityId), entityId)}`;
    return `${actor} ${verb} ${fields.length > 0 ? `${listFields(fields)} of ` : ""}${target}.`;
  };
}

/** Reads names of entities of an organization. Accounts can belong to several organizations, so only known ids are looked up. */
async function readNames(
  db: Queryable,
  organizationId: string,
  entity: Named,
  ids: readonly string[],
): Promise<readonly (readonly [string, string])[]> {
  const [table, column] = NAMES[entity];
  const rows = await db
    .selectFrom(table as "roles")
    .select(["id", `${column as "name"} as name`])
    .where("id", "in", ids)
    .$if(entity !== "account" && entity !== "organization", (query) =>
      query.where("organizationId", "=", organizationId),
    )
    .execute();
  return rows.map(({ id, name }) => [id, name]);
}

function nameChannel(names: ReadonlyMap<string, string>, id: string): string {
  const [appId, uid] = splitChannelId(id);
  return `the channel '${uid}' of the app ${quote(names.get(appId), appId)}`;
}

/** The audit log identifies a channel by the id of its app and its uid. */
function splitChannelId(id: string): readonly [appId: string, uid: string] {
  const slash = id.indexOf("/");
  return [id.slice(0, slash), id.slice(slash + 1)];
}

const quote = (name: string | undefined, id: string): string => (name ? `'${name}'` : id);

function listFields(fields: readonly string[]): string {
  const more = fields.length - MAX_FIELDS;
  const shown = fields.slice(0, MAX_FIELDS);
  const all = more > 0 ? [...shown, `${more} more ${more === 1 ? "field" : "fields"}`] : shown;
  const last = all.at(-1);
  return all.length === 1 ? `${last}` : `${all.slice(0, -1).join(", ")} and ${last}`;
}

const VERBS: Readonly<Record<AuditAction, string>> = {
  create: "created",
  update: "changed",
  delete: "deleted",
  install: "installed",
  upgrade: "upgraded",
  pause: "paused",
  resume: "resumed",
  rewind: "rewound",
  rotate: "rotated",
  revoke: "revoked",
  authorize: "authorized",
  approve: "approved",
  reject: "rejected",
  pay: "paid",
  refund: "refunded",
  expire: "expired",
  cancel: "canceled",
  read: "read",
  redrive: "redrove",
  replay: "replayed",
  test: "tested",
  issue: "obtained",
  renew: "renewed",
  acknowledge: "acknowledged",
  mute: "muted",
  unmute: "unmuted",
};

/** Returns the words of an entity's kind: `quarantinedItem` gives `quarantined item`. */
const nounOf = (entity: AuditEntity): string =>
  entity
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .replace(/^(api|sip) /, (word) => word.toUpperCase());
