/** The parts of a topic's name. */
export interface TopicParts {
  readonly organizationId: string;
  readonly appId: string;
  readonly channelUid: string;
  readonly type: string;
}

/**
 * The bus topic, which is also the stream's key: `events.<orgId>.apps.app.event_received.<appId>.<channelUid>.<type>`.
 * Control characters, white space, braces, wildcards of Redis and `%` itself are percent-encoded (UTF-8); all else of the type stays as it
 * is. Once made, a name is stored, and is what counts: one that was made under an older rule stays.
 */
export const topicOf = (parts: TopicParts): string => topicPrefixOf(parts) + encodeType(parts.type);

/**
 * The part of the names that all topics of a channel share. Joined: V8 keeps a text that was put together of others as the tree of
 * those, and every channel in force keeps this one.
 */
export const topicPrefixOf = ({ organizationId, appId, channelUid }: Omit<TopicParts, "type">): string =>
  ["events", organizationId, "apps.app.event_received", appId, channelUid, ""].join(".");

/** A type as it stands in the name of its topic. */
export function encodeType(type: string): string {
  return type.replace(/[\p{Cc}\s{}*?[\]\\^%]/gu, (char) => {
    let encoded = "";
    for (const byte of Buffer.from(char)) encoded += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    return encoded;
  });
}
