import { z } from "zod";
import { accountIdInput, textInput } from "../../kit/fields.ts";
import { freeFormInput, freeFormText } from "../../kit/free-form.ts";
import { patchOf } from "../../kit/merge.ts";

/** What can be changed of a participant. */
export const participantContent = z.strictObject({
  accountId: accountIdInput
    .nullable()
    .default(null)
    .meta({ description: "An account; null: somebody without one." }),
  agentIdentifier: textInput.meta({ description: "An agent's `identifier`.", example: "support" }),
  firstName: textInput,
  lastName: textInput,
  autoJoin: z
    .boolean()
    .default(false)
    .meta({ description: "Joins each conversation of the room when it is begun." }),
  isAdmin: z.boolean().default(false),
  isAgent: z.boolean().default(false),
  scope: freeFormInput,
  status: freeFormInput,
});
type ParticipantContent = z.output<typeof participantContent>;

export const participantPatch = patchOf(participantContent);

export const participantInput = z.strictObject({
  ...participantContent.shape,
  conversationId: z
    .string()
    .nullable()
    .default(null)
    .meta({ description: "A conversation of the room to take part in; null: the room itself." }),
});
export type ParticipantInput = z.output<typeof participantInput>;

/** As it is written. */
export const contentOf = ({ scope, status, ...content }: ParticipantContent) => ({
  ...content,
  scope: freeFormText(scope),
  status: freeFormText(status),
});
