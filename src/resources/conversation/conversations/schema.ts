import { z } from "zod";
import { patchOf } from "../../kit/merge.ts";
import { contentInput } from "../message-schema.ts";

const roomId = z.string().meta({ description: "A room.", example: "room_01jc9x2k4v8m3n5p7q9r1s0" });
const title = z.string().max(255).nullable().default(null).meta({ example: "Order 17" });
const ownerId = z.string().nullable().optional().meta({ description: "An account. Default: the caller's." });

/** What can be changed of a conversation. */
export const conversationContent = z.strictObject({ title, ownerId });
export const conversationPatch = patchOf(conversationContent);

export const conversationInput = z.strictObject({ roomId, title, ownerId });
export type ConversationInput = z.output<typeof conversationInput>;

export const liveConversationInput = z.strictObject({
  roomId,
  message: contentInput.nullable().default(null).meta({ description: "The first message, by the caller." }),
  title,
});
export type LiveConversationInput = z.output<typeof liveConversationInput>;
