import { standardResource } from "../../kit/standard-resource.ts";
import { messageResource } from "../message-resource.ts";
import { lockOpenRoom, ROOMS } from "../room-scope.ts";

/** Messages of a room, and of its conversations. */
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
      description: "It is said in the room itself, by the caller, in none of its conversations.",
      conflict: "the room takes no messages",
    },
    list: { description: "Those of its conversations among them." },
  },
});
