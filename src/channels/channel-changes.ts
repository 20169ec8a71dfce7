import type { ChannelContent } from "../data/channels/channels.ts";
import type { ChannelRow } from "../data/tables.ts";
import { parseJson } from "../event/parse-json.ts";
import { changedFields } from "../lib/json/changed-fields.ts";

/** Names of the channel fields that a write changes. The values are omitted, because they may be secret. */
export interface ChannelChanges {
  readonly plain: readonly string[];
  /** Changed secret fields. Only top-level names are listed. */
  readonly secret: readonly string[];
}

/** @param opened the decrypted secret fields before the write */
export function findChannelChanges(
  before: Pick<ChannelRow, "title" | "config" | "events" | "connectionId">,
  opened: Readonly<Record<string, unknown>>,
  content: Pick<ChannelContent, "title" | "config" | "events" | "secrets" | "connectionId">,
): ChannelChanges {
  const { title, config, events, connectionId } = before;
  const after = {
    title: content.title,
    config: content.config,
    events: content.events,
    connectionId: content.connectionId === undefined ? connectionId : content.connectionId,
  };
  const secret = changedFields(opened, asStored(content.secrets)).map((path) => path.split(".")[0]);
  return {
    plain: changedFields({ title, config, events, connectionId }, asStored(after)),
    secret: [...new Set(secret)].map((name) => `config.${name}`),
  };
}

/** Converts a value to its stored form. JSON drops `undefined` fields. */
const asStored = <T>(value: T): T => parseJson(JSON.stringify(value)) as T;
