import { z } from "zod";
import { QUARANTINE_REASONS } from "../../event/outcome.ts";

/** Events that a delivery published, in responses. */
export const eventReceipts = z.array(
  z.object({
    id: z.string(),
    type: z.string(),
    topic: z.string(),
    entryId: z.string(),
    status: z.enum(["published", "recovered", "duplicate"]),
  }),
);

/** Items of a delivery that were quarantined, in responses. */
export const quarantineReceipts = z.array(
  z.object({
    id: z.string(),
    reason: z.enum(QUARANTINE_REASONS),
    path: z.string().optional(),
    hint: z.string().optional().describe("How the sender can fix the failure."),
  }),
);

/** Headers or query parameters of a delivery, in responses. */
export const deliveryValues = z.record(z.string(), z.union([z.string(), z.array(z.string())]));
