import { standardResource } from "../../kit/standard-resource.ts";
import { messageResource } from "../message-resource.ts";
import { lockOpenRoom } from "../room-scope.ts";
import { requireGoingOn } from "./routes.ts";

const confined = "conversationId";

export const conversationMessages = standardResource({
  ...messageResource,
  path: "/conversations/:conversationId/messages",
  tag: "Conversations",
  name: "conversationMessage",
  within: {
    param: "conversationId",
    parent: { table: "conversations", prefix: "conv", words: "conversation" },
    lock: "createShared",
  },
  async prepare({ trx, caller, before, values: { conversationId } }) {
    if (before) return {};
    const { roomId, endedAt } = await trx
      .selectFrom("conversations")
      .select(["roomId", "endedAt"])
      .where("id", "=", conversationId)
      .executeTakeFirstOrThrow();
    requireGoingOn({ endedAt });
    await lockOpenRoom(trx, caller, roomId);
    return { roomId };
  },
  notes: {
    create: {
      confined,
      description: "The author is the caller. A message sent with a live token has no author.",
      conflict: "the conversation has ended, or its room accepts no messages",
    },
    list: { confined },
    get: { confined },
  },
});
