import { z } from "zod";
import { paramsField } from "./preset-params.ts";

/** Minimum and default interval of checks in seconds. The default is a day. */
const MIN_CHECK_SECONDS = 5;
const DAY_SECONDS = 86_400;

/** Settings with which Inlet registers a channel's address at the provider of its preset. */
export const registrationConfigSchema = z
  .strictObject({
    connectionId: z
      .string()
      .max(64)
      .optional()
      .describe(
        "Connection whose credentials may manage webhooks at the provider. Required unless the provider accepts everyone.",
      ),
    target: z
      .string()
      .max(64)
      .optional()
      .describe("Kind of object that sends, such as `repository`. Defaults to the preset's first one."),
    params: paramsField
      .default({})
      .describe("Parameters of the target, such as the name of a repository. The preset lists them."),
    baseUrl: z
      .url({ protocol: /^https?$/ })
      .max(1_024)
      .regex(/^[^?#@{}]*[^?#@{}/]$/, "must not contain ?, #, @, { or }, and must not end with /")
      .optional()
      .describe("Start of the API's URLs, for an installation of your own. Defaults to the preset's one."),
    checkSeconds: z
      .int()
      .min(MIN_CHECK_SECONDS)
      .max(30 * DAY_SECONDS)
      .default(DAY_SECONDS)
      .describe("Interval in seconds at which Inlet checks that the registration still exists."),
  })
  .describe(
    "Registers the channel's address at the provider and keeps the registration alive: Inlet creates it, checks it, renews it before it expires, and removes it when you delete the channel. Requires a preset with `registrations`.",
  );
export type RegistrationConfig = z.output<typeof registrationConfigSchema>;
