import type { RowDeps } from "../../kit/owned-rows.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { roomSchema } from "../conversation-entities.ts";
import { createRoom, deleteRoom, getRoom, listRooms, updateRoom } from "./queries.ts";
import { roomInput, roomPatch } from "./schema.ts";

/** The room in a path; extend it by what is in it. */
export const roomParams = { roomId: pathId("room", "room") } as const;
const room = standardRoutes({ name: "room", prefix: "room", entity: roomSchema });

/** Rooms: where conversations take place. */
export const rooms: Resource<RowDeps> = {
  path: "/rooms",
  tag: "Rooms",
  routes: (deps) => [
    room.create({ body: roomInput, missing: "the owner or the space is not there" }, ({ caller, body }) =>
      createRoom(deps, caller, body),
    ),
    room.list(({ caller, page }) => listRooms(deps, caller, page)),
    room.get(({ caller, id }) => getRoom(deps, caller, id)),
    room.update(
      {
        body: roomPatch,
        description: "Participants, conversations and messages are no part of the room itself.",
        missing: "it, its owner or its space is not there",
        conflict: "it is immutable",
      },
      ({ caller, id, patch }) => updateRoom(deps, caller, id, patch),
    ),
    room.remove(
      {
        description: "Its participants, and what was said in the room itself, go with it.",
        conflict: "it has conversations",
      },
      ({ caller, id }) => deleteRoom(deps, caller, id),
    ),
  ],
};
