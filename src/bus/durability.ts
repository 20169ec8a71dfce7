/** What an acknowledged write survives, weakest first. */
export const DURABILITY_LEVELS = ["none", "process", "fsync", "replica"] as const;
export type DurabilityLevel = (typeof DURABILITY_LEVELS)[number];
