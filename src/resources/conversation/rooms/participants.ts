import { z } from "zod";
import { pageQuery } from "../../../http/page.ts";
import { listOf } from "../../kit/answer.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { participantSchema } from "../conversation-entities.ts";
import {
  createParticipant,
  deleteParticipant,
  getParticipant,
  listParticipants,
  MAX_PARTICIPANTS,
  updateParticipant,
} from "./participant-queries.ts";
import { participantInput, participantPatch } from "./participant-schema.ts";
import { roomParams } from "./routes.ts";

const participant = standardRoutes({
  name: "participant",
  prefix: "part",
  entity: participantSchema,
  within: roomParams,
});
const placeQuery = z.object({
  ...pageQuery,
  conversationId: z
    .string()
    .optional()
    .meta({ description: "Those of that conversation of the room. Default: those of the room itself." }),
});

/** Who takes part in a room and in its conversations. */
export const participants: Resource<RowDeps> = {
  path: "/rooms/:roomId/participants",
  tag: "Rooms",
  routes: (deps) => [
    participant.create(
      {
        body: participantInput,
        missing: "the room, the conversation or the account is not there",
        conflict: `the account takes part already, or ${MAX_PARTICIPANTS} do`,
      },
      ({ caller, within, body }) => createParticipant(deps, caller, within.roomId, body),
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listParticipants",
        summary: "List the participants",
        params: roomParams,
        query: placeQuery,
        answer: listOf(participantSchema),
        missing: "the room or the conversation is not there",
      },
      ({ caller, params: { roomId }, query: { conversationId = null, ...page } }) =>
        listParticipants(deps, caller, { roomId, conversationId }, page),
    ),
    participant.get(({ caller, within, id }) => getParticipant(deps, caller, within.roomId, id), {
      description: "Of the room itself, or of any of its conversations.",
    }),
    participant.update(
      {
        body: participantPatch,
        missing: "it or its account is not there",
        conflict: "the account takes part already",
      },
      ({ caller, within, id, patch }) => updateParticipant(deps, caller, within.roomId, id, patch),
    ),
    participant.remove(
      { description: "A participant of the room stays in the conversations that it has joined." },
      ({ caller, within, id }) => deleteParticipant(deps, caller, within.roomId, id),
    ),
  ],
};
