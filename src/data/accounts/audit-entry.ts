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
  "registration",
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
  "renew",
  "acknowledge",
  "mute",
  "unmute",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** Author of a change: a caller of the API, or the operator of the gateway. */
export interface Author {
  readonly organizationId: string;
  readonly accountId: string | null;
  readonly keyId: string | null;
  readonly requestId: string | null;
}

/** Returns the author of changes that no API caller made, such as those from a config file. */
export const operatorOf = (organizationId: string): Author => ({
  organizationId,
  accountId: null,
  keyId: null,
  requestId: null,
});

/** One action in the audit log. The entry of a channel contains its `channelName`, because the channel's address is a credential. */
export interface AuditEntry {
  readonly action: AuditAction;
  readonly entity: AuditEntity;
  readonly id: string;
  /** Names of the changed fields. The audit log never contains their values. */
  readonly fields?: readonly string[];
}

export const channelName = (channel: { readonly appId: string; readonly uid: string }): string =>
  `${channel.appId}/${channel.uid}`;
