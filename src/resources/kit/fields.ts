import { z } from "zod";

/** Fields as the bodies of identity and access hold them. */
export const nameInput = z.string().min(1).max(255).meta({ example: "Operators" });
/** A short text, or none. */
export const textInput = z.string().max(255).nullable().default(null);
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
