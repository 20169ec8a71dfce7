/** The parts of a topic's name. */
export interface TopicParts {
  readonly organizationId: string;
  readonly appId: string;
  readonly channelUid: string;
  readonly type: string;
}

/**
 * The bus topic, which is also the stream's key: `events.<orgId>.apps.app.event_received.<appId>.<channelUid>.<type>`.
 * All outside `[A-Za-z0-9_.:/-]` of the type is percent-encoded (UTF-8), so that no topic holds a brace, a space or a
 * wildcard.
 */
export function topicOf(parts: TopicParts): string {
  const { organizationId, appId, channelUid, type } = parts;
  return `events.${organizationId}.apps.app.event_received.${appId}.${channelUid}.${encodeType(type)}`;
}

function encodeType(type: string): string {
  return type.replace(/[^A-Za-z0-9_.:/-]/gu, (char) => {
    let encoded = "";
    for (const byte of Buffer.from(char)) encoded += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    return encoded;
  });
}
