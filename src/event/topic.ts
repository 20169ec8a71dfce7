export interface TopicParts {
  readonly organizationId: string;
  readonly appId: string;
  readonly channelUid: string;
  readonly type: string;
}

/**
 * Formats a topic name, which is also the stream's key: `events.<orgId>.apps.app.event_received.<appId>.<channelUid>.<type>`.
 *
 * Control characters, whitespace, braces, Redis wildcards and `%` in the type are percent-encoded as UTF-8. The database stores
 * each name, so topics from earlier versions keep theirs when this rule changes.
 */
export const topicOf = (parts: TopicParts): string => topicPrefixOf(parts) + encodeType(parts.type);

/**
 * Returns the start of all topic names of a channel. `join` creates a flat string, because V8 keeps the parts of a concatenated
 * string in memory.
 */
export const topicPrefixOf = ({ organizationId, appId, channelUid }: Omit<TopicParts, "type">): string =>
  ["events", organizationId, "apps.app.event_received", appId, channelUid, ""].join(".");

export function encodeType(type: string): string {
  return type.replace(/[\p{Cc}\s{}*?[\]\\^%]/gu, (char) => {
    let encoded = "";
    for (const byte of Buffer.from(char)) encoded += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    return encoded;
  });
}

/** Returns the parts of a topic name before its type. */
export function parseTopicPrefix(topic: string): Omit<TopicParts, "type"> {
  const [, organizationId = "", , , , appId = "", channelUid = ""] = topic.split(".", 7);
  return { organizationId, appId, channelUid };
}
