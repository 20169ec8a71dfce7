import { z } from "zod";
import type { RowDeps } from "../../kit/owned-rows.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { conversationSchema } from "../conversation-entities.ts";
import { createConversation, createLiveConversation } from "./open.ts";
import {
  deleteConversation,
  endConversation,
  getConversation,
  listConversations,
  updateConversation,
} from "./queries.ts";
import { conversationInput, conversationPatch, liveConversationInput } from "./schema.ts";

export const conversationParams = { conversationId: pathId("conv", "conversation") } as const;
const conversation = standardRoutes({ name: "conversation", prefix: "conv", entity: conversationSchema });

/** Conversations: what is said in a room about one thing, live ones with a token for whoever has no other. */
export const conversations: Resource<RowDeps> = {
  path: "/conversations",
  tag: "Conversations",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/CreateLiveConversation",
        operation: "createLiveConversation",
        summary: "Begin a live conversation",
        description:
          "The `liveToken` is told here only. As bearer token it reads the conversation and its messages and posts to it, and opens nothing else, until the conversation ends or is deleted, or the account that has begun it is disabled or deleted. Messages that come with it have no author. The room's participants with `autoJoin` join; `message` is the first message, by the caller. All of it is done or nothing.",
        body: liveConversationInput,
        answer: conversationSchema,
        creates: true,
        missing: "the room is not there",
        conflict: "the room takes no messages (`allowMessages` is false)",
      },
      ({ caller, body }) => createLiveConversation(deps, caller, body),
    ),
    conversation.create(
      {
        body: conversationInput,
        description:
          "It is not live, and falls in the room's space. The room's participants with `autoJoin` join.",
        missing: "the room or the owner is not there",
      },
      ({ caller, body }) => createConversation(deps, caller, body),
    ),
    conversation.list(({ caller, page }) => listConversations(deps, caller, page)),
    conversation.get(({ caller, id }) => getConversation(deps, caller, id), { confined: "conversationId" }),
    conversation.update(
      { body: conversationPatch, missing: "it or its owner is not there" },
      ({ caller, id, patch }) => updateConversation(deps, caller, id, patch),
    ),
    conversation.remove(
      { description: "What was said in it goes with it, and a live token ends." },
      ({ caller, id }) => deleteConversation(deps, caller, id),
    ),
    defineRoute(
      {
        method: "post",
        path: "/:conversationId/end",
        operation: "endConversation",
        summary: "End a conversation",
        description: "Nothing more is said in it. It is not live any more, and its live token ends at once.",
        params: conversationParams,
        body: z.strictObject({}),
        answer: conversationSchema,
        conflict: "it has ended",
      },
      ({ caller, params }) => endConversation(deps, caller, params.conversationId),
    ),
  ],
};
