import type { Caller } from "../../../http/context.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { messageSchema } from "../conversation-entities.ts";
import { messageInput, messagePatch } from "../message-schema.ts";
import { deleteMessage, getMessage, listMessages, type MessagePlace, updateMessage } from "../messages.ts";
import { rows, sayInConversation } from "./queries.ts";
import { conversationParams } from "./routes.ts";

const message = standardRoutes({
  name: "conversationMessage",
  words: "message",
  prefix: "msg",
  entity: messageSchema,
  within: conversationParams,
});
const confined = "conversationId";

/** What is said in a conversation. */
export const conversationMessages: Resource<RowDeps> = {
  path: "/conversations/:conversationId/messages",
  tag: "Conversations",
  routes(deps) {
    const { db } = deps;
    /** @throws ApiError 404 */
    const placeOf = async (caller: Caller, conversationId: string): Promise<MessagePlace> => {
      const { id } = await rows.get(db, caller, conversationId);
      return { column: "conversationId", id };
    };
    return [
      message.create(
        {
          body: messageInput,
          confined,
          description: "The author is the caller; whoever has a live token is none.",
          conflict: "the conversation has ended, or its room takes no messages",
        },
        ({ caller, within, body }) => sayInConversation(deps, caller, within.conversationId, body),
      ),
      message.list(
        async ({ caller, within, page }) =>
          listMessages(db, caller, await placeOf(caller, within.conversationId), page),
        { confined },
      ),
      message.get(
        async ({ caller, within, id }) =>
          getMessage(db, caller, await placeOf(caller, within.conversationId), id),
        { confined },
      ),
      message.update({ body: messagePatch }, async ({ caller, within, id, patch }) =>
        updateMessage(deps, caller, await placeOf(caller, within.conversationId), id, patch),
      ),
      message.remove({}, async ({ caller, within, id }) =>
        deleteMessage(deps, caller, await placeOf(caller, within.conversationId), id),
      ),
    ];
  },
};
