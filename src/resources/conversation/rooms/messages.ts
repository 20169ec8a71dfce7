import { standardResource } from "../../kit/standard-resource.ts";
import { messageResource } from "../message-resource.ts";
import { lockOpenRoom, ROOMS } from "../room-scope.ts";

export const roomMessages = standardResource({
  ...messageResource,
  path: "/rooms/:roomId/messages",
  tag: "Rooms",
  name: "roomMessage",
  within: { param: "roomId", parent: ROOMS, lock: "createShared" },
  async prepare({ trx, caller, before, values: { roomId } }) {
    if (!before) await lockOpenRoom(trx, caller, roomId);
    return {};
  },
  notes: {
    create: {
      description: "Adds a message to the room itself, outside its conversations. The author is the caller.",
      conflict: "the room accepts no messages",
    },
    list: { description: "Includes the messages of the room's conversations." },
  },
});
