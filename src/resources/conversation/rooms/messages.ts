import type { Caller } from "../../../http/context.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { messageSchema } from "../conversation-entities.ts";
import { messageInput, messagePatch } from "../message-schema.ts";
import { deleteMessage, getMessage, listMessages, type MessagePlace, updateMessage } from "../messages.ts";
import { rows, sayInRoom } from "./queries.ts";
import { roomParams } from "./routes.ts";

const message = standardRoutes({
  name: "roomMessage",
  words: "message",
  prefix: "msg",
  entity: messageSchema,
  within: roomParams,
});

/** What is said in a room, and in its conversations. */
export const roomMessages: Resource<RowDeps> = {
  path: "/rooms/:roomId/messages",
  tag: "Rooms",
  routes(deps) {
    const { db } = deps;
    /** @throws ApiError 404 */
    const placeOf = async (caller: Caller, roomId: string): Promise<MessagePlace> => {
      const { id } = await rows.get(db, caller, roomId);
      return { column: "roomId", id };
    };
    return [
      message.create(
        {
          body: messageInput,
          description: "It is said in the room itself, by the caller, in none of its conversations.",
          conflict: "the room takes no messages",
        },
        ({ caller, within, body }) => sayInRoom(deps, caller, within.roomId, body),
      ),
      message.list(
        async ({ caller, within, page }) =>
          listMessages(db, caller, await placeOf(caller, within.roomId), page),
        { description: "Those of its conversations among them." },
      ),
      message.get(async ({ caller, within, id }) =>
        getMessage(db, caller, await placeOf(caller, within.roomId), id),
      ),
      message.update({ body: messagePatch }, async ({ caller, within, id, patch }) =>
        updateMessage(deps, caller, await placeOf(caller, within.roomId), id, patch),
      ),
      message.remove({}, async ({ caller, within, id }) =>
        deleteMessage(deps, caller, await placeOf(caller, within.roomId), id),
      ),
    ];
  },
};
