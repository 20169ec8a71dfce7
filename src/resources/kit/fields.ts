import { z } from "zod";
import { id, timestamp } from "../../http/fields.ts";
import { orElse, readOnly, withAnswer } from "./field.ts";

/** Fields that many resources have. */
export const nameInput = z.string().min(1).max(255).meta({ example: "Operators" });
/** A short text, or none. */
export const textInput = z.string().max(255).nullable().default(null);
/** A text of that length at most, or none. */
export const textUpTo = (maxChars: number) => z.string().max(maxChars).nullable().default(null);
/** The id of one of those, or none: see `references`. */
export const idInput = (description: string) => z.string().nullable().default(null).meta({ description });
/** An id of something that Inlet does not keep, or none: stored as given. */
export const opaqueIdInput = z
  .string()
  .max(255)
  .nullable()
  .default(null)
  .meta({ description: "Stored as given." });
export const accountIdInput = z.string().meta({
  description: "An account of the caller's organization.",
  example: "acc_01jc9x2k4v8m3n5p7q9r1s0",
});

export const organizationId = readOnly(id("org"));

const optionalId = (description: string) => z.string().nullable().optional().meta({ description });
const idAnswer = z.string().nullable();

/** The space that it falls in: the one that is named, null for none, or the caller's default one where nothing is said. */
export const spaceId = withAnswer(
  orElse(optionalId("Default: the caller's default space."), ({ caller }) => caller.defaultSpaceId),
  idAnswer,
);

/** The account that it belongs to. */
export const ownerId = withAnswer(
  orElse(optionalId("An account. Default: the caller's."), ({ caller }) => caller.accountId),
  idAnswer,
);

/** A name that is an id for people; default: the id. */
export const uidField = (words: string) =>
  withAnswer(
    orElse(
      z
        .string()
        .regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 characters of A-Z a-z 0-9 _ . -")
        .optional()
        .meta({ description: `Unique in the organization. Default: the ${words}'s id.`, example: "support" }),
      ({ id }) => id,
    ),
    z.string(),
  );

/** When an entity was made and last changed: the fields of its schema. */
export const times = { createdAt: timestamp, updatedAt: timestamp };
