import { createId } from "../lib/ids.ts";
import { recordChange } from "./changes.ts";
import { insertChannel, type NewChannel, type WriteContext } from "./channels.ts";
import type { Trx } from "./database.ts";
import type { AppRow, ChannelRow } from "./tables.ts";

export type NewApp = Pick<
  AppRow,
  "uid" | "title" | "description" | "blueprintId" | "organizationId" | "spaceId"
>;

/** Makes an app with its channels, in their order. */
export async function insertApp(
  trx: Trx,
  app: NewApp,
  channels: readonly NewChannel[],
  context: WriteContext,
): Promise<{ readonly app: AppRow; readonly channels: readonly ChannelRow[] }> {
  const row = await trx
    .insertInto("apps")
    .values({
      ...app,
      id: createId("app", context.nowMs),
      projectId: null,
      createdAt: new Date(context.nowMs),
      updatedAt: new Date(context.nowMs),
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  await recordChange(trx, { kind: "app", key: row.id });
  const channelRows: ChannelRow[] = [];
  for (const channel of channels) channelRows.push(await insertChannel(trx, row, channel, context));
  return { app: row, channels: channelRows };
}
