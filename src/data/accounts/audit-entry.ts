/** Kinds of objects whose changes are recorded, and what is read or given away. */
export const AUDIT_ENTITIES = [
  "accessToken",
  "account",
  "apiKey",
  "app",
  "artifact",
  "blueprint",
  "channel",
  "collection",
  "collectionField",
  "connection",
  "deadLetter",
  "delivery",
  "event",
  "form",
  "group",
  "identity",
  "membership",
  "order",
  "organization",
  "phoneNumber",
  "pricingPlan",
  "problem",
  "quarantinedItem",
  "role",
  "sipTrunk",
  "space",
  "state",
  "store",
  "storeCategory",
  "subscription",
  "variable",
] as const;
export type AuditEntity = (typeof AUDIT_ENTITIES)[number];

export const AUDIT_ACTIONS = [
  "create",
  "update",
  "delete",
  "install",
  "upgrade",
  "pause",
  "resume",
  "rewind",
  "rotate",
  "revoke",
  "authorize",
  "approve",
  "reject",
  "pay",
  "refund",
  "expire",
  "cancel",
  "read",
  "redrive",
  "replay",
  "test",
  "issue",
  "acknowledge",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** Who makes a change, and in which request: a caller of the API, or the operator (`operatorOf`). */
export interface Author {
  /** In whose list it stands. */
  readonly organizationId: string;
  readonly accountId: string | null;
  readonly keyId: string | null;
  readonly requestId: string | null;
}

/** The author of changes by a declared set-up or the first start: the operator. */
export const operatorOf = (organizationId: string): Author => ({
  organizationId,
  accountId: null,
  keyId: null,
  requestId: null,
});

/** One change. A channel is named by `channelName`: its address is a credential. */
export interface AuditEntry {
  readonly action: AuditAction;
  readonly entity: AuditEntity;
  readonly id: string;
  /** The names of what was changed (see `changedFields`), never values. */
  readonly fields?: readonly string[];
}

export const channelName = (channel: { readonly appId: string; readonly uid: string }): string =>
  `${channel.appId}/${channel.uid}`;
