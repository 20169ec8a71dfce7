import { z } from "zod";
import { id, timestamp } from "../../http/fields.ts";
import { orElse, readOnly, withAnswer } from "./field.ts";

export const nameInput = z.string().min(1).max(255).meta({ example: "Operators" });
export const textInput = z.string().max(255).nullable().default(null);
export const textUpTo = (maxChars: number) => z.string().max(maxChars).nullable().default(null);
/** Optional id of another entity. To check that the entity exists, list the field in `references` of the resource. */
export const idInput = (description: string) => z.string().nullable().default(null).meta({ description });
export const opaqueIdInput = z
  .string()
  .max(255)
  .nullable()
  .default(null)
  .meta({ description: "An id in another system. Inlet stores it and does not interpret it." });
export const accountIdInput = z.string().meta({
  description: "Id of an account that the caller's organization can see.",
  example: "acc_01jc9x2k4v8m3n5p7q9r1s0",
});

export const organizationId = readOnly(id("org"));

const optionalId = (description: string) => z.string().nullable().optional().meta({ description });
const idAnswer = z.string().nullable();

export const spaceId = withAnswer(
  orElse(
    optionalId("Id of a space, or null for none. Default: the caller's default space."),
    ({ caller }) => caller.defaultSpaceId,
  ),
  idAnswer,
);

export const ownerId = withAnswer(
  orElse(
    optionalId("Id of the owner's account, or null for none. Default: the caller's account."),
    ({ caller }) => caller.accountId,
  ),
  idAnswer,
);

export const UID = /^[A-Za-z0-9_.-]{1,64}$/;
export const UID_MESSAGE = "must be 1 to 64 characters of A-Z a-z 0-9 _ . -";
export const uidField = (words: string) =>
  withAnswer(
    orElse(
      z
        .string()
        .regex(UID, UID_MESSAGE)
        .optional()
        .meta({ description: `Unique in the organization. Default: the ${words}'s id.`, example: "support" }),
      ({ id }) => id,
    ),
    z.string(),
  );

export const times = { createdAt: timestamp, updatedAt: timestamp };
