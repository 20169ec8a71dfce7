import { createId } from "../../lib/ids.ts";
import { recordAccess, recordAudit } from "../accounts/audit.ts";
import { type AuditEntry, type Author, channelName } from "../accounts/audit-entry.ts";
import { recordChange } from "../changes.ts";
import { insertChannels, type NewChannel, type WriteContext } from "../channels/channels.ts";
import type { Trx } from "../database.ts";
import type { AppRow, ChannelRow } from "../tables.ts";

export type NewApp = Pick<AppRow, "uid" | "title" | "description" | "blueprintId" | "organizationId"> &
  Partial<Pick<AppRow, "artifactId">> & { readonly spaceId: string };

export interface InstalledApp {
  readonly app: AppRow;
  readonly channels: readonly ChannelRow[];
}

/** Inserts an app and its channels. Returns the inserted channels in the given order. */
export async function insertApp(
  trx: Trx,
  author: Author,
  app: NewApp,
  channels: readonly NewChannel[],
  context: WriteContext,
): Promise<InstalledApp> {
  const row = await trx
    .insertInto("apps")
    .values({
      artifactId: null,
      isSystem: false,
      ...app,
      id: createId("app", context.nowMs),
      projectId: null,
      createdAt: new Date(context.nowMs),
      updatedAt: new Date(context.nowMs),
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  await recordChange(trx, { kind: "app", key: row.id });
  await recordAudit(trx, author, { action: "install", entity: "app", id: row.id }, context.nowMs);
  const made = await insertChannels(trx, row, channels, context);
  const entries = made.map((channel): AuditEntry => {
    return { action: "create", entity: "channel", id: channelName(channel) };
  });
  await recordAccess(trx, author, entries, context.nowMs);
  return { app: row, channels: made };
}
