import { z } from "zod";
import { patchOf } from "../../kit/merge.ts";

const text = (maxChars: number) => z.string().max(maxChars).nullable().default(null);

export const roomInput = z.strictObject({
  title: text(255).meta({ example: "Support" }),
  description: text(4_096),
  hash: text(255).meta({ description: "Stored as given." }),
  ownerId: z.string().nullable().optional().meta({ description: "An account. Default: the caller's." }),
  spaceId: z.string().nullable().optional().meta({ description: "Default: the caller's default space." }),
  allowGuestConversations: z
    .boolean()
    .default(false)
    .meta({ description: "For clients to read: whether guests may begin conversations." }),
  allowMessages: z
    .boolean()
    .default(true)
    .meta({ description: "False: nothing is said in it, nor in its conversations." }),
  immutable: z.boolean().default(false).meta({ description: "True: it is never changed again." }),
});
export type RoomInput = z.output<typeof roomInput>;

export const roomPatch = patchOf(roomInput);
